// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// For gRPC a cut stream is INTERNAL. It counts as UNAVAILABLE as well.
func TestCuts(t *testing.T) {
	t.Parallel()
	const (
		trailers = "server closed the stream without sending trailers"
		reset    = "stream terminated by RST_STREAM with error code: "
	)
	list := func(list ...codes.Code) func(*spec.Retry) {
		return func(r *spec.Retry) { r.RetryableStatusCodes = list }
	}
	settings := func(wait int, c codes.Code) spec.Code {
		b := backoff.Config{Initial: time.Duration(wait) * ms, Max: time.Second, Multiplier: 1, Jitter: "NONE"}
		return spec.Code{Codes: []codes.Code{c}, Backoff: &b}
	}
	both := func(perCode ...spec.Code) func(*spec.Retry) {
		return func(r *spec.Retry) {
			r.RetryableStatusCodes, r.PerCode = []codes.Code{codes.Internal, codes.Unavailable}, perCode
		}
	}
	internal := func(message string) decision.Outcome {
		return decision.Outcome{Status: status.New(codes.Internal, message)}
	}
	for name, row := range map[string]struct {
		policy func(*spec.Retry)
		out    decision.Outcome
		unsafe bool
		want   policy.Reason
		wait   int // in ms, by which the settings are known; 0: the budget is not asked
	}{
		"UNAVAILABLE is listed":                 {list(codes.Unavailable), internal(trailers), false, policy.ReasonRetry, 100},
		"INTERNAL is listed":                    {list(codes.Internal), internal(trailers), false, policy.ReasonRetry, 100},
		"neither is listed":                     {list(codes.Aborted), internal(trailers), false, policy.ReasonNonRetryable, 0},
		"reset, NO_ERROR":                       {nil, internal(reset + "NO_ERROR"), false, policy.ReasonRetry, 100},
		"reset, INTERNAL_ERROR":                 {nil, internal(reset + "INTERNAL_ERROR"), false, policy.ReasonRetry, 100},
		"reset, PROTOCOL_ERROR":                 {nil, internal(reset + "PROTOCOL_ERROR"), false, policy.ReasonRetry, 100},
		"wrapped":                               {nil, internal("orders: rpc error: code = Internal desc = " + trailers), false, policy.ReasonRetry, 100},
		"INTERNAL for another reason":           {nil, internal("unexpected EOF"), false, policy.ReasonNonRetryable, 0},
		"another code with the text":            {nil, decision.Outcome{Status: status.New(codes.Unknown, trailers)}, false, policy.ReasonNonRetryable, 0},
		"not idempotent":                        {nil, internal(trailers), true, policy.ReasonNotIdempotent, 0},
		"settings of UNAVAILABLE":               {both(settings(2, codes.Unavailable)), internal(trailers), false, policy.ReasonRetry, 2},
		"settings of INTERNAL first":            {both(settings(2, codes.Unavailable), settings(3, codes.Internal)), internal(trailers), false, policy.ReasonRetry, 3},
		"other INTERNALs have no share of them": {both(settings(2, codes.Unavailable)), internal("no"), false, policy.ReasonRetry, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := first(mustPolicy(t, row.policy), row.out)
			s.Safe = !row.unsafe
			d := decision.Decide(&s)
			if wait := int(d.Delay / ms); d.Reason != row.want || wait != row.wait || wait > 0 && !s.Fails() {
				t.Errorf("%s after %v, a failure: %v; want %s after %d ms", d.Reason, d.Delay, s.Fails(), row.want, row.wait)
			}
		})
	}
	t.Run("hedging", func(t *testing.T) {
		t.Parallel()
		for code, want := range map[codes.Code]policy.Reason{
			codes.Unavailable: policy.ReasonHedge, codes.Internal: policy.ReasonHedge, codes.Aborted: policy.ReasonNonRetryable,
		} {
			p := policyOf(t, spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 3, NonFatalStatusCodes: []codes.Code{code}}})
			out := internal(trailers)
			if d := decided(p, out); d.Reason != want {
				t.Errorf("with %s not fatal: %s; want %s", code, d.Reason, want)
			}
		}
	})
}
