// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// cuts are gRPC's own texts for Go, with the code INTERNAL, about streams that ended without a status: a proxy or a
// server that is no gRPC server has cut them. They are failures of the transport, which are UNAVAILABLE elsewhere.
// "unexpected EOF" is not among them, since servers say that of other things, too.
var cuts = []string{
	"server closed the stream without sending trailers",
	"stream terminated by RST_STREAM with error code: NO_ERROR",
	"stream terminated by RST_STREAM with error code: INTERNAL_ERROR", // nginx, when the server behind it has gone
}

func isCut(st *status.Status) bool {
	return st.Code() == codes.Internal && slices.ContainsFunc(cuts, func(text string) bool { return strings.Contains(st.Message(), text) })
}

// Retryable reports whether another attempt may end better than out, by its code or by a classifier's word.
func (p *Policy) Retryable(out *Outcome) bool {
	return out.Again || slices.Contains(p.retry.Codes, p.codeOf(out))
}

// codeOf is the code that an outcome counts as.
func (p *Policy) codeOf(out *Outcome) codes.Code {
	if out.As != codes.OK {
		return out.As
	}
	for i := range p.retry.Overrides {
		o := &p.retry.Overrides[i]
		if slices.Contains(o.Codes, out.Status.Code()) && strings.Contains(out.Status.Message(), o.Contains) && has(out.Status, o.Info) {
			return o.As
		}
	}
	if isCut(out.Status) {
		return p.codeOfCut()
	}
	return out.Status.Code()
}

// NotProcessed reports whether the server has not worked on an attempt that it has received: it says so, or a classifier
// does, or the policy, by code and ErrorInfo.
func (p *Policy) NotProcessed(out *Outcome) bool {
	switch {
	case !out.Bare:
		return false
	case out.Refused:
		return true
	default:
		own := p.ownFor(out)
		return own != nil && own.NotProcessed && slices.Contains(own.Codes, out.Status.Code()) && hasAlone(out.Status, own.Info)
	}
}

// allows reports whether an attempt may be retried by what the server has said of a delay. A classifier's word wins.
func allows(own *policy.CodeSpec, out *Outcome, push Pushback) bool {
	return own == nil || !own.OnlyWithServerDelay || push.Source != "" || out.Again
}

// has reports whether a status has such an ErrorInfo.
func has(st *status.Status, e policy.ErrorInfo) bool {
	return e == policy.ErrorInfo{} || slices.ContainsFunc(errorInfos(st), func(info *errdetails.ErrorInfo) bool { return fits(e, info) })
}

// hasAlone reports whether a status has such an ErrorInfo and no other: a second one tells of a handler that has passed on what
// another service has said.
func hasAlone(st *status.Status, e policy.ErrorInfo) bool {
	all := errorInfos(st)
	return len(all) == 1 && fits(e, all[0])
}

func fits(e policy.ErrorInfo, info *errdetails.ErrorInfo) bool {
	return (e.Domain == "" || e.Domain == info.GetDomain()) && (e.Reason == "" || e.Reason == info.GetReason())
}

func errorInfos(st *status.Status) (list []*errdetails.ErrorInfo) {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			list = append(list, info)
		}
	}
	return list
}
