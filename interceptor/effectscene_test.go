// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// effects counts what a server has done for each call, whose request is its number from 0.
type effects struct {
	made     []atomic.Int32 // what has taken effect
	seen     []atomic.Int32 // requests that have arrived
	answered []bool         // the client was told of success
}

func newEffects(calls int) *effects {
	return &effects{make([]atomic.Int32, calls), make([]atomic.Int32, calls), make([]bool, calls)}
}

// numberOf is the number of the call that a request belongs to.
func numberOf(request []byte) int {
	m := new(wrapperspb.StringValue)
	if err := proto.Unmarshal(request, m); err != nil {
		return -1
	}
	n, err := strconv.Atoi(m.GetValue())
	if err != nil {
		return -1
	}
	return n
}

// chance is one of [0, 1) that depends on the call and on how often it has arrived.
func (e *effects) chance(call int) float64 {
	return rand.New(rand.NewPCG(uint64(call), uint64(e.seen[call].Add(1)))).Float64()
}

// fault is what goes wrong, and how often: 0 to 1 of all requests.
type fault struct {
	name   string
	often  float64
	before bool // it comes before the effect
	silent bool // no answer comes in the time of an attempt
	step   testserver.Step
}

// mishap is the fault with a chance, or nil.
func mishap(faults []fault, chance float64) *fault {
	for i := range faults {
		if chance -= faults[i].often; chance < 0 {
			return &faults[i]
		}
	}
	return nil
}

// serve is the script of a server with faults.
func (e *effects) serve(faults []fault) testserver.Step {
	return testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
		n := numberOf(a.Request)
		f := mishap(faults, e.chance(n))
		if f == nil || !f.before {
			e.made[n].Add(1)
		}
		if f == nil {
			return text("done")
		}
		return f.step
	})
}

// faults are all that may happen to a request: four of ten go wrong, half of them after the effect.
func faults() []fault {
	fail := testserver.Fail
	return []fault{
		{"refused", 0.10, true, false, fail(codes.Unavailable)},
		{"refused with a delay", 0.05, true, false, fail(codes.ResourceExhausted).RetryInfo(20 * ms)},
		{"refused for good", 0.02, true, false, fail(codes.Unavailable).Pushback("-1")},
		{"hangs before", 0.005, true, true, testserver.Hang()},
		{"fails after", 0.05, false, false, fail(codes.Unavailable)},
		{"aborted after", 0.03, false, false, fail(codes.Aborted)},
		{"unknown after", 0.02, false, false, fail(codes.Unknown)},
		{"fails after, and asks for a retry now", 0.03, false, false, fail(codes.Unavailable).Pushback("0")},
		{"fails after, and asks for a retry soon", 0.03, false, false, fail(codes.Internal).RetryInfo(10 * ms)},
		{"fails after, with headers", 0.02, false, false, fail(codes.Unavailable).Header(metadata.Pairs("from", "a"))},
		{"says DEADLINE_EXCEEDED after", 0.02, false, false, fail(codes.DeadlineExceeded)},
		{"answers late", 0.01, false, true, text("done").Delay(300 * ms)},
		{"never answers", 0.005, false, true, testserver.Hang()},
		{"drops the connection after", 0.0005, false, false, testserver.Drop()},
		{"cuts the answer in its middle", 0.0005, false, false, testserver.Play(testserver.Receive(1), testserver.Cut())},
	}
}

// eager are policies that repeat whatever they may, each for a service of its own, which is to say that they
// declare no method safe.
func eager() policy.Config {
	every := policy.CodeSet(0)
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		every |= policy.Codes(code)
	}
	retry := policy.RetrySpec{
		MaxAttempts: 5, Backoff: policy.Backoff{Initial: 50 * ms, Max: time.Second, Multiplier: 2},
		Codes: every, PerAttemptTimeout: 100 * ms, Budget: policy.NoBudget,
	}
	inPlace := retry
	inPlace.OnAttemptTimeout, inPlace.WaitForReadyOnRetry = policy.OnTimeoutRetry, new(true)
	hedge := policy.HedgeSpec{MaxAttempts: 5, Delay: 20 * ms, NonFatal: every, Budget: policy.NoBudget}
	entry := func(service string, s policy.Spec) policy.MethodConfig {
		return policy.MethodConfig{Names: []policy.Name{{Service: "acme.eager.v1." + service}}, Spec: s}
	}
	return policy.Config{Methods: []policy.MethodConfig{
		entry("Beside", policy.Spec{Retry: &retry}),
		entry("InPlace", policy.Spec{Retry: &inPlace}),
		entry("Hedged", policy.Spec{Hedge: &hedge}),
	}}
}

// check wants each call done at most once, and done if its client was told so; that many answers
// were lost, or the test would prove nothing.
func (e *effects) check(t *testing.T, lost int) {
	t.Helper()
	for n := range e.made {
		made := e.made[n].Load()
		if made > 1 {
			t.Fatalf("call %d took effect %d times, in %d requests", n, made, e.seen[n].Load())
		}
		if made == 0 && e.answered[n] {
			t.Fatalf("call %d was answered, and took no effect", n)
		}
		if made == 1 && !e.answered[n] {
			lost--
		}
	}
	if lost > 0 {
		t.Errorf("%d more lost answers are needed for this test to mean something", lost)
	}
}
