// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// The OTLP specification has clients retry RESOURCE_EXHAUSTED only if the server names a delay.
func TestDecide_OnlyWithServerDelay(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *spec.Retry) {
		r.PerCode = []spec.Code{{Codes: []codes.Code{codes.ResourceExhausted}, OnlyWithServerDelay: true}}
	})
	after := failed(codes.ResourceExhausted)
	after.Trailer = metadata.Pairs(decision.RetryAfter, "2")
	again := failed(codes.ResourceExhausted)
	again.Again = true
	for name, row := range map[string]struct {
		out    decision.Outcome
		reason policy.Reason
		delay  time.Duration
		fails  bool
	}{
		"no delay":                {failed(codes.ResourceExhausted), policy.ReasonNonRetryable, 0, false},
		"another code":            {failed(codes.Unavailable), policy.ReasonRetry, 100 * ms, true},
		"pushback":                {pushed(codes.ResourceExhausted, "700"), policy.ReasonRetry, 700 * ms, true},
		"pushback of 0":           {pushed(codes.ResourceExhausted, "0"), policy.ReasonRetry, 0, true},
		"pushback that says no":   {pushed(codes.ResourceExhausted, "-1"), policy.ReasonPushbackStop, 0, true},
		"RetryInfo":               {decision.Outcome{Status: withDetails(t, durationpb.New(3*time.Second))}, policy.ReasonRetry, 3 * time.Second, true},
		"retry-after":             {after, policy.ReasonRetry, 2 * time.Second, true},
		"a classifier wants more": {again, policy.ReasonRetry, 100 * ms, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := first(p, row.out)
			if d := decision.Decide(&s); d.Reason != row.reason || d.Delay != row.delay || s.Fails() != row.fails {
				t.Errorf("%s after %v, a failure: %v; want %s after %v, %v", d.Reason, d.Delay, s.Fails(), row.reason, row.delay, row.fails)
			}
		})
	}
}
