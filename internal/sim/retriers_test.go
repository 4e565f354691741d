// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// twoMethods returns a process that calls two methods of a service that is down, with a budget of a given scope.
func twoMethods(t *testing.T, scope, second string) *Scenario {
	t.Helper()
	s := testkit.Must(Parse("s.yaml", fmt.Appendf(nil, `
title: two methods
policies: {retry: retry.yaml, copy: retry.yaml}
services: [{name: shop, time: 10ms}, {name: stock, time: 10ms}]
fleets:
  - name: users
    rate: 100
    calls:
      - {service: shop, method: /a.B/C, policy: retry, deadline: 1s, share: 3}
      - {%s, deadline: 1s}
phases: [{name: down, length: 10s, faults: [{service: shop, down: true}, {service: stock, down: true}]}]
`, second), func(string) ([]byte, error) {
		return fmt.Appendf(nil, `
budgets: [{name: five, %s throttle: {maxTokens: 10, tokenRatio: 0.001}}]
methodConfig:
- idempotency: ASSUME
  name: [{service: a.B}, {service: x.Y}]
  retryPolicy: {maxAttempts: 2, initialBackoff: 0.01s, maxBackoff: 0.01s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: five}
`, scope), nil
	}))(t)
	return s
}

// The calls of a process share the state of one Retrier: the budget within its scope, if they follow one policy file.
func TestRetriersBudget(t *testing.T) {
	t.Parallel()
	const one = 2 // retries: each of two calls takes two of ten tokens, of which more than half must be there
	for _, row := range []struct {
		scope, second string
		retries       int
	}{
		{"", "service: shop, method: /a.B/D, policy: retry", one},
		{"", "service: shop, method: /x.Y/D, policy: retry", one},
		{"scope: SERVICE,", "service: shop, method: /x.Y/D, policy: retry", 2 * one},
		{"", "service: stock, method: /a.B/C, policy: retry", 2 * one},
		{"scope: PROCESS,", "service: stock, method: /a.B/C, policy: retry", one},
		{"scope: PROCESS,", "service: stock, method: /a.B/C, policy: copy", 2 * one},
	} {
		f := play(t, twoMethods(t, row.scope, row.second), Options{}).Runs[0].Fleets[0]
		if got := f.Extra; got != row.retries {
			t.Errorf("%q, %q: %d retries; want %d; the calls ended by %v", row.scope, row.second, got, row.retries, f.Reasons)
		}
		first, second := f.ByCall[0], f.ByCall[1]
		if got := Ratio(first.Calls, f.Calls); math.Abs(got-0.75) > 0.03 || first.Calls+second.Calls != f.Calls || first.Method != "/a.B/C" {
			t.Errorf("%+v and %+v of %d calls; want three to one", first, second, f.Calls)
		}
	}
}

// A call's observations help other calls of the same method, and only those.
func TestRetriersMethod(t *testing.T) {
	t.Parallel()
	s := twoMethods(t, "", "service: shop, method: /a.B/C, policy: retry")
	w, err := newWorld(s, &Variant{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	links := w.fleets[0].links
	if &links[0].methods[0] != &links[1].methods[0] || &links[0].retriers.slots[0] != &links[1].retriers.slots[0] {
		t.Error("calls of one method in one process know different things of it, or wait in different slots")
	}
	s.Fleets[0].Calls[1].Method = "/a.B/D"
	if w, err = newWorld(s, &Variant{}, 1); err != nil {
		t.Fatal(err)
	}
	links = w.fleets[0].links
	if &links[0].methods[0] == &links[1].methods[0] {
		t.Error("calls of two methods know the same")
	}
}

// The sequence of calls is the same in each variant.
func TestFleetChoice(t *testing.T) {
	t.Parallel()
	s := twoMethods(t, "", "service: shop, method: /a.B/D, policy: retry")
	s.Fleets[0].Calls[1].Deadline = 2 * time.Second
	s.Variants = []Variant{{Name: "none", All: NoPolicy}, {Name: "more clients", Clients: 7}}
	r := play(t, s, Options{})
	none, more := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0]
	if none.ByCall[0].Calls != more.ByCall[0].Calls || none.ByCall[1].Calls != more.ByCall[1].Calls {
		t.Errorf("%+v without retries, %+v with them; want the same calls", none.ByCall, more.ByCall)
	}
}

// The cap on attempts is the call's, else the policy file's, as in a Retrier.
func TestAttemptLimit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		limit, attempts string
		want            float64
	}{
		{"", "", 5},
		{"maxAttemptsLimit: 8, ", "", 8},
		{"maxAttemptsLimit: 3, ", "", 3},
		{"maxAttemptsLimit: 3, ", ", attempts: 7", 7},
	} {
		s := testkit.Must(Parse("s.yaml", fmt.Appendf(nil, `
title: many attempts
policies:
  retry: {%smethodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 9, initialBackoff: 0.001s, maxBackoff: 0.001s,
    backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}}]}
services: [{name: shop, time: 1ms}]
fleets: [{name: users, rate: 1, calls: {service: shop, method: /a.B/C, policy: retry, deadline: 10s%s}}]
phases: [{name: down, length: 30s, faults: [{service: shop, down: true}]}]
`, row.limit, row.attempts), nil))(t)
		if got := play(t, s, Options{}).Runs[0].Services[0].PerCall; got != row.want {
			t.Errorf("%q, %q: %v requests a call; want %v", row.limit, row.attempts, got, row.want)
		}
	}
}

// A final error shows that the server works, so a retry that ends in one gives its cost back: the budget bears as many failures of
// one backend of four with half of the responses NOT_FOUND as without those.
func TestFinalErrors(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, clients := range []int{1, 10, 100} {
		answered := func(faults ...Fault) float64 {
			faults = append(faults, Fault{Service: "shop", Backends: []int{0}, Down: true, Code: codes.Unavailable})
			s := crowded(t, Phase{Name: "one fails", Length: time.Minute, Load: 0.55, Faults: faults})
			s.Variants = s.Variants[:1]
			f := play(t, s, Options{Clients: clients}).Runs[0].Fleets[0]
			return f.Success + float64(f.Reasons[policy.ReasonNonRetryable])/float64(f.Calls)
		}
		without, with := answered(), answered(Fault{Service: "shop", Flaky: 0.5, Code: codes.NotFound})
		t.Logf("%d clients: %.4f of the calls are answered, %.4f with NOT_FOUND", clients, without, with)
		if without < 0.98 || with < without-0.002 {
			t.Errorf("%d clients: %.4f of the calls are answered, %.4f with NOT_FOUND; want within 0.002", clients, without, with)
		}
	}
}
