// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// Class is the meaning of an outcome for a policy. It is computed once, and used for what the method learns, the decision and
// the budget.
type Class struct {
	Outcome

	Pushback  Pushback // Source is "" if there is none
	Retryable bool     // another attempt may succeed, judged by the code or a classifier

	code     codes.Code // the code that it counts as
	codeSpec *spec.Code // that code's own settings; nil: the policy's
}

// Classify returns the class of an outcome for a policy.
func Classify(p *policy.Policy, out *Outcome, now time.Time) Class {
	is := Class{Outcome: *out, Pushback: ReadPushback(out.Status, out.Trailer, now), code: codeOf(p, out)}
	if out.Delay > 0 && is.Pushback.Source != PushbackTrailer {
		is.Pushback = Pushback{Source: FromVerdict, Delay: out.Delay}
	}
	is.codeSpec = codeSpecOf(p, is.code)
	is.Retryable = out.Again || slices.Contains(compiled.Of(p).Extra.RetryableStatusCodes, is.code)
	return is
}

// listed reports whether the policy allows a retry of the failure. For some codes that requires a delay from the server. A
// classifier's result wins.
func (is *Class) listed() bool {
	return is.Retryable && (is.codeSpec == nil || !is.codeSpec.OnlyWithServerDelay || is.Pushback.Source != "" || is.Again)
}

// Fails reports whether the outcome is a failure for the budget: that of an attempt that a server may have seen, which the policy
// retries, or whose retry the server forbids. It counts even if nothing follows (gRFC A6). An attempt that has timed out has not ended:
// it counts when it is abandoned.
func (is *Class) Fails() bool {
	failed := is.FailsOK() || is.Status.Code() != codes.OK && !is.Well
	return failed && !is.TimedOut && !is.Final && is.Seen() && (is.listed() || is.Pushback.Stop)
}

// settings returns the settings for the code: its own, and the policy's where it has none.
func (is *Class) settings(p *policy.Policy) (maxAttempts int, b *backoff.Config) {
	maxAttempts, b = p.MaxAttempts(), &compiled.Of(p).Extra.Backoff
	if own := is.codeSpec; own != nil {
		maxAttempts, b = cmp.Or(own.MaxAttempts, maxAttempts), cmp.Or(own.Backoff, b)
	}
	return maxAttempts, b
}

// codeOf returns the code that an outcome counts as.
func codeOf(p *policy.Policy, out *Outcome) codes.Code {
	if isCut(out.Status) {
		return codeOfCut(p)
	}
	return out.Status.Code()
}

// codeSpecOf returns a code's own settings, or nil if it has none.
func codeSpecOf(p *policy.Policy, code codes.Code) *spec.Code {
	for i := range compiled.Of(p).Extra.PerCode {
		own := &compiled.Of(p).Extra.PerCode[i]
		if slices.Contains(own.Codes, code) {
			return own
		}
	}
	return nil
}

// cuts are messages of gRPC for Go, with the code INTERNAL, for streams that a proxy or a non-gRPC server ended without a
// status. They are transport failures, which are UNAVAILABLE elsewhere. "unexpected EOF" is not in the list, because servers
// also return it for other errors.
var cuts = []string{
	"server closed the stream without sending trailers",
	"stream terminated by RST_STREAM with error code: ", // whichever gRPC maps to INTERNAL: nginx sends INTERNAL_ERROR, AWS' load balancer PROTOCOL_ERROR
}

func isCut(st *status.Status) bool {
	return st.Code() == codes.Internal && slices.ContainsFunc(cuts, func(text string) bool { return strings.Contains(st.Message(), text) })
}

// codeOfCut returns the code that a cut stream counts as: INTERNAL if the policy has settings for it, else UNAVAILABLE if the
// policy lists it.
func codeOfCut(p *policy.Policy) codes.Code {
	if codeSpecOf(p, codes.Internal) == nil && slices.Contains(compiled.Of(p).Extra.RetryableStatusCodes, codes.Unavailable) {
		return codes.Unavailable
	}
	return codes.Internal
}
