// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// byQuantile hedges at the 95th percentile, after a second until that is known.
func byQuantile() spec.Config {
	return hedged(func(h *spec.Hedge) {
		h.HedgingDelay = time.Second
		h.Quantile, h.MinDelay, h.MaxDelay = 0.95, 5*ms, 400*ms
	})
}

// train makes calls that take as long as they are told to.
func (s scene) train(t *testing.T, calls int, took func(i int) time.Duration) {
	t.Helper()
	for i := range calls {
		s.On(get, text("quick").Delay(took(i)))
		testkit.Must(s.call(t.Context(), get))(t)
	}
}

// A hedge that wins cuts the first attempt short. Were only winners counted, the quantile would creep
// down until every call is hedged.
func TestLatency_HedgesDoNotPullItDown(t *testing.T) {
	play(t, byQuantile(), func(t *testing.T, s scene) {
		s.train(t, 100, func(i int) time.Duration { return time.Duration(i%100+1) * ms })
		var slow atomic.Int64
		s.On(get, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			if len(a.Metadata.Get("grpc-previous-rpc-attempts")) > 0 {
				return text("hedge").Delay(ms)
			}
			return text("first").Delay(time.Duration(slow.Add(1)%100+1) * ms)
		}))
		s.Reset()
		for range 1000 {
			testkit.Must(s.call(t.Context(), get))(t)
		}
		synctest.Wait()
		if extra := s.Count(get) - 1000; extra < 20 || extra > 80 {
			t.Errorf("%d hedges for 1000 calls; want about 5 %%", extra)
		}
	})
}

// within makes a call of some kind that has a second, and returns how it has ended.
func within(t *testing.T, conn *grpc.ClientConn, desc *grpc.StreamDesc) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return exchange(ctx, conn, desc, get)
}

func repeat(took time.Duration, n int) []time.Duration {
	return slices.Repeat([]time.Duration{took}, n)
}

// fresh runs a test in virtual time, with a client that knows nothing of its server.
func fresh(t *testing.T, c spec.Config, test func(t *testing.T, s scene), options ...interceptor.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		options := append([]interceptor.Option{withJournal(j), interceptor.WithRandom(func() float64 { return 0 })}, options...)
		s := scene{Server: testserver.Start(t), journal: j, retrier: mustNew(t, mustSet(t, c), options...)}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		test(t, s)
	})
}

// takes makes calls that have a second, one after the other, whose responses take so long.
func (s scene) takes(t *testing.T, desc *grpc.StreamDesc, method string, times ...time.Duration) {
	t.Helper()
	for _, took := range times {
		s.On(method, text("").Delay(took))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := exchange(ctx, s.conn, desc, method); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// A stream's server has its request when that is sent, whether it is kept or not, and although the application never closes its side: from then
// on its response is timed, and eight of them make known what is usual, so that hedges are sent.
func TestLatency_OfStreamsThatStayOpen(t *testing.T) {
	for name, opts := range map[string][]grpc.CallOption{"kept": nil, "not kept": {grpc.MaxRetryRPCBufferSize(0)}} {
		t.Run(name, func(t *testing.T) {
			fresh(t, hedged(), func(t *testing.T, s scene) {
				list := func(opts ...grpc.CallOption) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					stream := s.open(t, ctx, serverStream, opts...)
					synctest.Wait() // the attempt is open, and is sent the application's own message
					send(t, stream, "list")
					if got, err := receive(stream); fmt.Sprint(got, err) != "[a] EOF" {
						t.Error(got, err)
					}
				}
				answers := faults.Play(faults.Receive(1), faults.Pause(ms), say("a"))
				s.On(get, answers)
				for range 8 {
					list(opts...)
				}
				s.Reset()
				s.On(get, testserver.Hang().Times(1), answers)
				list()
				if got := s.waits(); got != "[100ms]" {
					t.Errorf("the hedge follows after %s; want 100ms", got)
				}
			})
		})
	}
}

// While all of the method's last answers were very slow, failures are not retried: of any policy, by every driver. Very slow is longer than
// the attempt's own timeout, and than a quarter of the call's time, which is 250 ms here.
func TestSlowEverywhere(t *testing.T) {
	t.Parallel()
	short, long := plain(), plain()
	short.PerAttemptTimeout, long.PerAttemptTimeout = 100*ms, 500*ms
	keyed := config(plain())
	for i := range keyed.Methods {
		keyed.Methods[i].IdempotencyKey = "key"
	}
	never, retried := policy.ReasonSlowEverywhere, policy.ReasonAttemptsExhausted
	for policyName, of := range map[string]struct {
		spec.Config

		limit time.Duration
	}{
		"no timeout":                       {config(plain()), 250 * ms},
		"a timeout of less than a quarter": {config(short), 250 * ms},
		"a timeout of more":                {config(long), 500 * ms},
		"with a key":                       {keyed, 250 * ms},
	} {
		for kind, desc := range callKinds {
			limit := of.limit
			if desc != nil && desc.ClientStreams { // to which attempt timeouts don't apply
				limit = 250 * ms
			}
			over := limit + ms
			for name, row := range map[string]struct {
				took   []time.Duration // by the answers before
				pause  time.Duration
				reason policy.Reason
			}{
				"all":              {repeat(over, 10), 0, never},
				"all, an hour ago": {repeat(over, 10), time.Hour, never},
				"just within":      {repeat(limit, 10), 0, retried},
				"nine of ten":      {append(repeat(over, 9), 10*ms), 0, retried},
				"nine answers":     {repeat(over, 9), 0, retried},
			} {
				t.Run(policyName+"/"+kind+"/"+name, func(t *testing.T) {
					fresh(t, of.Config, func(t *testing.T, s scene) {
						s.takes(t, desc, get, slices.Clone(row.took)...)
						time.Sleep(row.pause)
						s.On(get, testserver.Fail(codes.Unavailable))
						if err := within(t, s.conn, desc); reasonOf(err) != row.reason {
							t.Errorf("%v (%s); want %s", err, reasonOf(err), row.reason)
						}
					})
				})
			}
		}
	}
}
