// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// informed returns a failure whose status has an ErrorInfo for each reason, with the domain acme.com.
func informed(t testing.TB, code codes.Code, reasons ...string) decision.Outcome {
	t.Helper()
	var details []protoadapt.MessageV1
	for _, reason := range reasons {
		details = append(details, &errdetails.ErrorInfo{Domain: "acme.com", Reason: reason})
	}
	st, err := status.New(code, "").WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return decision.Outcome{Status: st}
}

// A call of a method that isn't idempotent is retried only if the server has not worked on it.
func TestDecide_NotProcessed(t *testing.T) {
	t.Parallel()
	const retry, unsafe, exhausted = policy.ReasonRetry, policy.ReasonNotIdempotent, codes.ResourceExhausted
	full := policy.CodeSpec{
		Codes: []codes.Code{exhausted}, ErrorDomain: "acme.com", ErrorReason: "FULL", NotProcessed: true,
	}
	bare := func(out decision.Outcome) decision.Outcome {
		out.Bare = true
		return out
	}
	refused := func(out decision.Outcome) decision.Outcome {
		out.Refused = true
		return out
	}
	for name, row := range map[string]struct {
		out       decision.Outcome
		spec      policy.CodeSpec
		overrides []policy.CodeSpec
		want      policy.Reason
	}{
		"a failure":              {out: bare(failed(exhausted)), want: unsafe},
		"a refusal":              {out: bare(refused(failed(exhausted))), want: retry},
		"a refusal with headers": {out: refused(failed(exhausted)), want: unsafe},
		"a refusal with a code that isn't listed": {out: bare(refused(failed(codes.Aborted))), want: policy.ReasonNonRetryable},
		"the policy knows it":                     {out: bare(informed(t, exhausted, "FULL")), spec: full, want: retry},
		"the policy knows it, and headers came":   {out: informed(t, exhausted, "FULL"), spec: full, want: unsafe},
		"another reason":                          {out: bare(informed(t, exhausted, "QUOTA")), spec: full, want: unsafe},
		"another code":                            {out: bare(informed(t, codes.Unavailable, "FULL")), spec: full, want: unsafe},
		"no details":                              {out: bare(failed(exhausted)), spec: full, want: unsafe},
		"a second ErrorInfo":                      {out: bare(informed(t, exhausted, "FULL", "PAYMENT")), spec: full, want: unsafe},
		"a second ErrorInfo, before it":           {out: bare(informed(t, exhausted, "PAYMENT", "FULL")), spec: full, want: unsafe},
		"another code that counts as it, by its message": {
			out: bare(informed(t, codes.Unavailable, "FULL")), spec: full, want: unsafe,
			overrides: []policy.CodeSpec{{Codes: []codes.Code{codes.Unavailable}, As: exhausted}},
		},
		"it may have been processed": {
			out: bare(informed(t, exhausted, "FULL")), want: unsafe,
			spec: policy.CodeSpec{Codes: full.Codes, ErrorDomain: full.ErrorDomain, ErrorReason: full.ErrorReason},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustPolicy(t, func(r *policy.RetrySpec) {
				r.Overrides = row.overrides
				if row.spec.Codes != nil {
					r.PerCode = []policy.CodeSpec{row.spec}
				}
			})
			call, gates := decision.Call{Attempts: 1}, new(purse)
			if d := p.Decide(&call, p.Classify(&row.out, noon), gates, noon, 0); d.Reason != row.want {
				t.Errorf("%s; want %s", d.Reason, row.want)
			}
			if listed := row.want != policy.ReasonNonRetryable; (gates.failed == 1) != listed || (gates.asked == 1) != (row.want == retry) {
				t.Errorf("the budget was told of %d failures and asked %d times: a refusal costs what a failure does", gates.failed, gates.asked)
			}
		})
	}
}

// The settings of a code may differ by ErrorInfo: the first match wins.
func TestDecide_ErrorInfo(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *policy.RetrySpec) {
		r.PerCode = []policy.CodeSpec{
			{Codes: []codes.Code{codes.ResourceExhausted}, ErrorDomain: "acme.com", ErrorReason: "FULL", CostFactor: 2},
			{Codes: []codes.Code{codes.ResourceExhausted}, ErrorDomain: "acme.com", CostFactor: 3},
			{Codes: []codes.Code{codes.ResourceExhausted}, CostFactor: 4},
		}
		r.Overrides = []policy.CodeSpec{{Codes: []codes.Code{codes.Aborted}, ErrorReason: "BUSY", As: codes.Unavailable}}
	})
	for name, row := range map[string]struct {
		out  decision.Outcome
		cost float64 // 0: not retried
	}{
		"both":                        {informed(t, codes.ResourceExhausted, "FULL"), 2},
		"both, behind another":        {informed(t, codes.ResourceExhausted, "QUOTA", "FULL"), 2},
		"the domain":                  {informed(t, codes.ResourceExhausted, "QUOTA"), 3},
		"none":                        {failed(codes.ResourceExhausted), 4},
		"an override":                 {informed(t, codes.Aborted, "BUSY"), 1},
		"an override that fits not":   {informed(t, codes.Aborted, "GONE"), 0},
		"an override without details": {failed(codes.Aborted), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, gates := decision.Call{Attempts: 1, Safe: true}, new(purse)
			if d := p.Decide(&call, p.Classify(&row.out, noon), gates, noon, 0); d.Retry != (row.cost > 0) || gates.factor != row.cost {
				t.Errorf("%s, which costs %v; want %v", d.Reason, gates.factor, row.cost)
			}
		})
	}
}

// The OTLP specification has clients retry RESOURCE_EXHAUSTED only if the server names a delay.
func TestDecide_OnlyWithServerDelay(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *policy.RetrySpec) {
		r.PerCode = []policy.CodeSpec{{Codes: []codes.Code{codes.ResourceExhausted}, OnlyWithServerDelay: true}}
	})
	after := failed(codes.ResourceExhausted)
	after.Trailer = metadata.Pairs(decision.RetryAfter, "2")
	again := failed(codes.ResourceExhausted)
	again.Again = true
	for name, row := range map[string]struct {
		out    decision.Outcome
		reason policy.Reason
		delay  time.Duration
		failed int
	}{
		"no delay":                {failed(codes.ResourceExhausted), policy.ReasonNonRetryable, 0, 0},
		"another code":            {failed(codes.Unavailable), policy.ReasonRetry, 100 * ms, 1},
		"pushback":                {pushed(codes.ResourceExhausted, "700"), policy.ReasonRetry, 700 * ms, 1},
		"pushback of 0":           {pushed(codes.ResourceExhausted, "0"), policy.ReasonRetry, 0, 1},
		"pushback that says no":   {pushed(codes.ResourceExhausted, "-1"), policy.ReasonPushbackStop, 0, 1},
		"RetryInfo":               {decision.Outcome{Status: withDetails(t, durationpb.New(3*time.Second))}, policy.ReasonRetry, 3 * time.Second, 1},
		"retry-after":             {after, policy.ReasonRetry, 2 * time.Second, 1},
		"a classifier wants more": {again, policy.ReasonRetry, 100 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, gates := decision.Call{Attempts: 1, Safe: true}, new(purse)
			if d := p.Decide(&call, p.Classify(&row.out, noon), gates, noon, 0); d.Reason != row.reason || d.Delay != row.delay || gates.failed != row.failed {
				t.Errorf("%s after %v, %d failures; want %s after %v, %d", d.Reason, d.Delay, gates.failed, row.reason, row.delay, row.failed)
			}
		})
	}
}

func TestDeniesRefusedRetry(t *testing.T) {
	t.Parallel()
	deny, none := mustParse(t, "refusedRetry: DENY"), mustParse(t, "{}")
	for name, row := range map[string]struct {
		set  *decision.Set
		said *bool
		want bool
	}{
		"the file":        {deny, nil, true},
		"nobody":          {none, nil, false},
		"the policy":      {none, new(false), true},
		"the policy wins": {deny, new(true), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compiled(t, policy.Spec{RefusedRetry: row.said})
			if got := row.set.DeniesRefusedRetry(p); got != row.want {
				t.Errorf("%v; want %v", got, row.want)
			}
			if row.said == nil && row.set.DeniesRefusedRetry(nil) != row.want {
				t.Errorf("without a policy: %v; want %v", !row.want, row.want)
			}
		})
	}
	set := mustParse(t, "refusedRetry: DENY\nmethodConfig: [{name: [{service: a.B}]}, {name: [{service: a.C}], refusedRetry: ALLOW}]")
	if of := set.Lookup("/a.B/D"); !set.DeniesRefusedRetry(of) || *of.Spec().RefusedRetry {
		t.Errorf("%v; an entry leaves it to the file", of.Spec().RefusedRetry)
	}
	if of := set.Lookup("/a.C/D"); set.DeniesRefusedRetry(of) {
		t.Error("the entry's own word does not win")
	}
}
