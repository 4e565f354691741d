// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// Class is what an outcome means to a policy. It is found once, and all that follows goes by it: what the method learns,
// what is decided, and what the budget is told.
type Class struct {
	Outcome

	Pushback     Pushback // the server's word, if it said one
	Retryable    bool     // another attempt may end better, by the code or by a classifier's word
	NotProcessed bool     // the server has not worked on the attempt that it has received

	code codes.Code       // that it counts as
	own  *policy.CodeSpec // the settings for that; nil: the policy's
}

// Classify says what an outcome means.
func (p *Policy) Classify(out *Outcome, now time.Time) Class {
	is := Class{Outcome: *out, Pushback: ReadPushback(out.Status, out.Header, out.Trailer, now), code: p.codeOf(out)}
	is.own = p.ownFor(is.code, out.Status)
	is.Retryable = out.Again || slices.Contains(p.retry.Codes, is.code)
	is.NotProcessed = out.Bare && (out.Refused || is.saysNotProcessed())
	return is
}

// Worked reports whether the server may have worked on the attempt.
func (is *Class) Worked() bool { return !is.Unsent && !is.NotProcessed }

// saysNotProcessed reports whether the policy knows by code and ErrorInfo that the server has not worked on the attempt.
func (is *Class) saysNotProcessed() bool {
	return is.own != nil && is.own.NotProcessed && slices.Contains(is.own.Codes, is.Status.Code()) && hasAlone(is.Status, is.own.Info)
}

// listed reports whether the policy lets the failure be retried: some codes only if the server has named a delay. A
// classifier's word wins.
func (is *Class) listed() bool {
	return is.Retryable && (is.own == nil || !is.own.OnlyWithServerDelay || is.Pushback.Source != "" || is.Again)
}

// failed reports whether an attempt has ended with an error. One that has timed out has not ended: it counts when it is
// abandoned.
func (is *Class) failed() bool { return !is.TimedOut && !is.Final && is.Status.Code() != codes.OK }

// with returns the settings after an attempt: the policy's where the code has none of its own.
func (p *Policy) with(own *policy.CodeSpec) (maxAttempts int, b *policy.Backoff, cost float64) {
	maxAttempts, b, cost = p.retry.MaxAttempts, &p.retry.Backoff, 1
	if own != nil {
		maxAttempts, b, cost = cmp.Or(own.MaxAttempts, maxAttempts), cmp.Or(own.Backoff, b), cmp.Or(own.CostFactor, cost)
	}
	return maxAttempts, b, cost
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

// ownFor returns the settings for the code that a status counts as; nil if it has none of its own.
func (p *Policy) ownFor(code codes.Code, st *status.Status) *policy.CodeSpec {
	for i := range p.retry.PerCode {
		if own := &p.retry.PerCode[i]; slices.Contains(own.Codes, code) && has(st, own.Info) {
			return own
		}
	}
	return nil
}

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

// codeOfCut is the code that a cut counts as: INTERNAL if the policy has settings for that, else UNAVAILABLE if it
// lists that.
func (p *Policy) codeOfCut() codes.Code {
	for i := range p.retry.PerCode {
		if slices.Contains(p.retry.PerCode[i].Codes, codes.Internal) {
			return codes.Internal
		}
	}
	if slices.Contains(p.retry.Codes, codes.Unavailable) {
		return codes.Unavailable
	}
	return codes.Internal
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
