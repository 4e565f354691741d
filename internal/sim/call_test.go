// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	ms     = time.Millisecond
	served = 163 * ms // no answer comes in the instant of a timer, where chance would say which is first
	method = "/acme.shop.v1.Shop/Get"
)

// trouble is a backend's fault, for the simulator and for the test server.
type trouble struct {
	fault sim.Fault
	step  testserver.Step
}

var troubles = map[string]trouble{
	"down":          {sim.Fault{Down: true, Code: codes.Unavailable}, testserver.Fail(codes.Unavailable)},
	"hangs":         {sim.Fault{Hang: true}, testserver.Hang()},
	"fails late":    {sim.Fault{Flaky: 1, Code: codes.Unavailable}, testserver.Fail(codes.Unavailable).Delay(served)},
	"not retryable": {sim.Fault{Down: true, Code: codes.Internal}, testserver.Fail(codes.Internal)},
	"pushback":      {sim.Fault{Down: true, Code: codes.Unavailable, Pushback: new(70 * ms)}, testserver.Fail(codes.Unavailable).Pushback("70")},
	"ends late":     {sim.Fault{Flaky: 1, Code: codes.Internal}, testserver.Fail(codes.Internal).Delay(served)},
	"forbids late":  {sim.Fault{Flaky: 1, Code: codes.Unavailable, Pushback: new(time.Duration(-1))}, testserver.Fail(codes.Unavailable).Pushback("-1").Delay(served)},
	"is slow":       {sim.Fault{Slower: 1.2}, testserver.OK().Delay(served * 6 / 5)}, // later than an attempt should be
	"forbids":       {sim.Fault{Down: true, Code: codes.Unavailable, Pushback: new(time.Duration(-1))}, testserver.Fail(codes.Unavailable).Pushback("-1")},
}

var policies = map[string]string{
	"retries":  `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE}`,
	"beside":   `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, perAttemptTimeout: 0.1s}`,
	"in place": `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, perAttemptTimeout: 0.1s, onAttemptTimeout: RETRY}`,
	"late":     `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE, DEADLINE_EXCEEDED], jitter: NONE, perAttemptTimeout: 0.3s}`,
	"hedges":   `hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0.06s, nonFatalStatusCodes: [UNAVAILABLE]}`,
	"at once":  `hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0s, nonFatalStatusCodes: [UNAVAILABLE], budget: NONE}`,
	"throttle": "retryPolicy: {maxAttempts: 5, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, budget: t}\nbudgets: [{name: t, throttle: {maxTokens: 12, tokenRatio: 0.5}}]",
	"counted":  "retryPolicy: {maxAttempts: 5, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, perAttemptTimeout: 0.1s, budget: t}\nbudgets: [{name: t, throttle: {maxTokens: 12, tokenRatio: 0.5}}]",
	"replaced": "retryPolicy: {maxAttempts: 5, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, perAttemptTimeout: 0.1s, onAttemptTimeout: RETRY, budget: t}\nbudgets: [{name: t, throttle: {maxTokens: 8, tokenRatio: 0.5}}]",
	"one":      `timeout: 0.2s`,
}

// The same sequential calls of one client, in the simulator and by the interceptor over real gRPC: every request arrives at
// the same time, and every call ends at the same time.
func TestCallAsInterceptor(t *testing.T) {
	t.Parallel()
	for name, text := range policies {
		for what, trouble := range troubles {
			if name == "at once" && slices.Contains([]string{"not retryable", "pushback", "forbids"}, what) {
				continue // over real gRPC, chance says how many attempts of one instant are sent before the first answer
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				file := "methodConfig:\n  - name: [{service: acme.shop.v1.Shop, method: Get}]\n    " + text + "\n"
				set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
				var truth string
				synctest.Test(t, func(t *testing.T) { truth = played(t, set, trouble.step) })
				if got := simulated(t, set, trouble.fault); got != truth {
					t.Errorf("the simulator:\n%s\nthe interceptor:\n%s", got, truth)
				}
			})
		}
	}
}

// calls are made one second after the other.
const calls = 4

// played makes the calls over real gRPC, in virtual time, and returns the times.
func played(t *testing.T, set *policy.Set, step testserver.Step) string {
	t.Helper()
	server := testserver.Start(t)
	server.On(method, step)
	retrier := testkit.Must(interceptor.New(set, interceptor.WithRandom(func() float64 { return 0 })))(t)
	conn := server.Dial(t, retrier.DialOptions()...)
	conn.Connect()
	synctest.Wait()
	start := time.Now()
	var ends []string
	for i := range calls {
		timer := time.NewTimer(time.Until(start.Add(time.Duration(i+1) * time.Second)))
		<-timer.C
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 800*ms)
		_ = conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
		cancel()
		ends = append(ends, time.Since(began).String())
		synctest.Wait()
	}
	var requests []string
	for _, a := range server.Attempts() {
		requests = append(requests, a.Time.Sub(start).String())
	}
	return timeline(requests, ends)
}

func timeline(requests, ends []string) string {
	return fmt.Sprintf("requests at %s; calls took %s", strings.Join(requests, " "), strings.Join(ends, " "))
}

// simulated makes the calls in the simulator, and returns the times.
func simulated(t *testing.T, set *policy.Set, f sim.Fault) string {
	t.Helper()
	f.Service = "shop"
	s := &sim.Scenario{
		Title: "one client", Seed: 1, Bucket: 10 * ms, Recovery: sim.Recovery{Success: 0.99, Window: 250 * ms},
		Policies: map[string]*sim.Policy{"p": {Set: methods.Describe(set)}},
		Services: []sim.Service{{Name: "shop", Backends: 1, Workers: 100, Time: &sim.Distribution{A: served}, Refuse: codes.ResourceExhausted, Guard: true}},
		Fleets: []sim.Fleet{{
			Name: "users", Clients: 1,
			Calls: []sim.Call{{Service: "shop", Method: method, Policy: "p", Deadline: 800 * ms}},
		}},
		Phases: []sim.Phase{{Length: 6 * time.Second, Faults: []sim.Fault{f}}},
	}
	begins := make([]time.Duration, calls)
	for i := range begins {
		begins[i] = time.Duration(i+1) * time.Second
	}
	requests, took := sim.Trace(t, s, begins)
	return timeline(texts(requests), texts(took))
}

func texts(list []time.Duration) []string {
	out := make([]string, 0, len(list))
	for d := range slices.Values(list) {
		out = append(out, d.String())
	}
	return out
}
