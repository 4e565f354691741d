// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The default helps healthy services, whatever else is true of them: each test plays four servers under round_robin, in virtual time,
// from which some trouble begins after a while.

// traffic is the calls of one client to four servers.
type traffic struct {
	policy   string        // of the method, in the form of a policy file: "retryPolicy: {…}"; "GRPC": gRPC's own retries
	rate     float64       // calls a second, that come independently of each other
	burst    int           // calls that come together each time; 0: one
	servers  int           // 0: 4
	deadline time.Duration // of each call
	quiet    int           // calls before the trouble; 0: 100
	calls    int           // in the trouble; 0: 1000

	calm, trouble servers
	dial          []grpc.DialOption
}

// servers returns what the n-th server does, with the same times in each run.
type servers func(n int, times *testkit.Times) testserver.Step

// played is what became of the calls in the trouble.
type played struct {
	success, perCall float64
	p99              time.Duration
	slow             int                   // decisions about a slow attempt
	followed         int                   // of them, to send another one
	reasons          map[policy.Reason]int // why nothing was sent
}

func (o played) String() string {
	return fmt.Sprintf("%.1f %% succeed, %.3f requests a call, p99 %v, %d of %d slow attempts are followed, else %v",
		100*o.success, o.perCall, o.p99, o.followed, o.slow, o.reasons)
}

// part returns the part of the slow attempts that another one follows.
func (o played) part() float64 { return float64(o.followed) / float64(max(o.slow, 1)) }

// The policies.
const (
	retries4 = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]`

	noTimeout  = retries4 + `}`
	timeout100 = retries4 + `, perAttemptTimeout: 0.1s}`
	inPlace100 = retries4 + `, perAttemptTimeout: 0.1s, onAttemptTimeout: RETRY}`
	timeout400 = retries4 + `, perAttemptTimeout: 0.4s}`
	hedge100   = `hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s, nonFatalStatusCodes: [UNAVAILABLE]}`
	ofGRPC     = "GRPC"
)

// entryOf returns a policy file with one policy.
func entryOf(policy string) string {
	return "methodConfig:\n  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]\n    " + policy + "\n"
}

// client is a connection of the traffic.
func (c traffic) client(t *testing.T, all []*testserver.Server, o interceptor.Observer) *grpc.ClientConn {
	t.Helper()
	if c.policy == ofGRPC {
		const config = `{"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
		conn := testkit.Must(testserver.DialAll(all, append(c.dial, grpc.WithDefaultServiceConfig(config))...))(t)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	chance := interceptor.WithRandom(testkit.NewTimes(0, 0, 3).Chance)
	r := testkit.Must(interceptor.New(mustParse(t, entryOf(c.policy)), interceptor.WithObserver(o), chance))(t)
	t.Cleanup(r.Close)
	conn := testkit.Must(testserver.DialAll(all, append(c.dial, r.DialOptions()...)...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// play makes the calls.
func (c traffic) play(t *testing.T) (o played) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o = played{reasons: map[policy.Reason]int{}}
		var mu sync.Mutex // guards all below
		counts := false
		var took []time.Duration
		decided := func(_ context.Context, e interceptor.Event) {
			mu.Lock()
			defer mu.Unlock()
			if !counts {
				return
			}
			if e.Slow() {
				o.slow++
			}
			switch {
			case e.Slow() && e.WillRetry:
				o.followed++
			case !e.WillRetry:
				o.reasons[e.Reason]++
			}
		}
		var all []*testserver.Server
		for range cmp.Or(c.servers, 4) {
			all = append(all, testserver.Start(t, testserver.Keep(0)))
		}
		conn := c.client(t, all, interceptor.Observer{Decision: decided, Diagnostic: func(policy.Diagnostic) {}})
		times := testkit.NewTimes(0, 0, 5)
		serve := func(f servers) {
			for i, s := range all {
				drawn := testkit.NewTimes(30*ms, 0.5, uint64(7+i))
				s.On("*", testserver.Func(func(context.Context, testserver.Attempt) testserver.Step { return f(i, drawn) }))
			}
		}
		var running sync.WaitGroup
		calls := func(n int, ended func(time.Duration, error)) {
			for i := range n {
				running.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
					defer cancel()
					began := time.Now()
					err := conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{})
					ended(time.Since(began), err)
				})
				if i%max(c.burst, 1) == 0 {
					time.Sleep(times.Wait(c.rate / float64(max(c.burst, 1))))
				}
			}
		}
		serve(c.calm)
		troubled := cmp.Or(c.calls, 1000)
		calls(cmp.Or(c.quiet, 100), func(time.Duration, error) {})
		running.Wait()
		synctest.Wait()
		mu.Lock()
		counts = true
		mu.Unlock()
		for _, s := range all {
			s.Reset()
		}
		serve(c.trouble)
		succeeded := 0
		calls(troubled, func(in time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			took = append(took, in)
			if err == nil {
				succeeded++
			}
		})
		running.Wait()
		requests := 0
		for _, s := range all {
			requests += s.Count("*")
		}
		o.success, o.perCall = float64(succeeded)/float64(troubled), float64(requests)/float64(troubled)
		slices.Sort(took)
		o.p99 = took[len(took)*99/100]
	})
	return o
}

// ordinary takes a median of 30 ms, and in a hundredth of the requests more than 96 ms.
func ordinary(_ int, times *testkit.Times) testserver.Step { return text("").Delay(times.Draw()) }

// one returns a trouble of the first server.
func one(trouble servers) servers {
	return func(n int, times *testkit.Times) testserver.Step {
		if n == 0 {
			return trouble(n, times)
		}
		return ordinary(n, times)
	}
}

// slower is a trouble in which requests take ten times as long.
func slower(_ int, times *testkit.Times) testserver.Step { return text("").Delay(10 * times.Draw()) }

func hanging(int, *testkit.Times) testserver.Step { return testserver.Hang() }

// A backend that is ten times slower, and answers, is a reason for attempts at others. If all are slower, it is none.
func TestHelps_TenTimesSlower(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for name, file := range map[string]string{"beside": timeout100, "in place": inPlace100, "hedges": hedge100} {
		for _, deadline := range []time.Duration{time.Second, 5 * time.Second} {
			for _, rate := range []float64{20, 200} {
				t.Run(fmt.Sprint(name, "/", deadline, "/", rate), func(t *testing.T) {
					t.Parallel()
					c := traffic{policy: file, rate: rate, deadline: deadline, calm: ordinary, trouble: one(slower)}
					if o := c.play(t); o.part() < 0.85 || o.slow < 200 { // 0.874 to 1 in many runs
						t.Errorf("one of four: %v; want 85 %% of the slow attempts followed", o)
					} else {
						t.Logf("one of four: %v", o)
					}
					c.trouble = slower
					if o := c.play(t); o.perCall > 1.02 {
						t.Errorf("all: %v; want 1.02 requests a call", o)
					} else {
						t.Logf("all: %v", o)
					}
				})
			}
		}
	}
}

// After a step of the response times, and with larger requests of one method, failures are retried as by gRPC itself.
func TestHelps_Step(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	failing := func(answers servers) servers {
		return func(n int, times *testkit.Times) testserver.Step {
			if times.Chance() < 0.1 {
				return testserver.Fail(codes.Unavailable).Delay(ms)
			}
			return answers(n, times)
		}
	}
	larger := func(part float64) servers {
		return func(n int, times *testkit.Times) testserver.Step {
			if times.Chance() < part {
				return slower(n, times)
			}
			return ordinary(n, times)
		}
	}
	for name, answers := range map[string]servers{
		"all take 10 times as long":      slower,
		"a third takes 10 times as long": larger(0.33),
		"most take 10 times as long":     larger(0.8),
	} {
		for kind, file := range map[string]string{"timeout 100ms": timeout100, "timeout 400ms": timeout400, "no timeout": noTimeout} {
			for _, deadline := range []time.Duration{2 * time.Second, 5 * time.Second} {
				t.Run(fmt.Sprint(name, "/", kind, "/", deadline), func(t *testing.T) {
					t.Parallel()
					c := traffic{policy: file, rate: 50, deadline: deadline, calm: ordinary, trouble: failing(answers)}
					o := c.play(t)
					c.policy = ofGRPC
					grpc := c.play(t)
					if t.Logf("%v; gRPC's own retries: %v", o, grpc); o.success < grpc.success-0.025 { // 98.2 % or more in many runs
						t.Errorf("%v; want as gRPC's own retries: %v", o, grpc)
					}
				})
			}
		}
	}
}

// The tail of a busy client is hedged: a hundredth of the requests takes 250 ms.
func TestHelps_TailOfABusyClient(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	tail := func(_ int, times *testkit.Times) testserver.Step {
		if times.Chance() < 0.01 {
			return text("").Delay(250 * ms)
		}
		return text("").Delay(20 * ms)
	}
	for name, file := range map[string]string{"beside": timeout100, "hedges": hedge100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := traffic{policy: file, rate: 1000, deadline: time.Second, calls: 5000, calm: tail, trouble: tail}.play(t)
			if t.Log(o); o.part() < 0.95 || o.slow < 30 || o.p99 > 130*ms {
				t.Errorf("%v; want 95 %% of the slow attempts followed, and a p99 of 130ms", o)
			}
		})
	}
}

// A server of which a part of the requests waits for a slow disk, or which is farther away than the others, ends no help when another
// one hangs.
func TestHelps_UnequalServers(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	disk := func(n int, times *testkit.Times) testserver.Step {
		if n == 3 && times.Chance() < 0.3 {
			return text("").Delay(400 * ms)
		}
		return ordinary(n, times)
	}
	farther := func(n int, times *testkit.Times) testserver.Step {
		if n == 3 {
			return text("").Delay(60*ms + times.Draw())
		}
		return ordinary(n, times)
	}
	for name, calm := range map[string]servers{"a slow disk": disk, "a farther region": farther} {
		for kind, file := range map[string]string{"beside": timeout100, "in place": inPlace100, "hedges": hedge100} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				o := traffic{policy: file, rate: 50, deadline: time.Second, calm: calm, trouble: func(n int, times *testkit.Times) testserver.Step {
					if n == 0 {
						return testserver.Hang()
					}
					return calm(n, times)
				}}.play(t)
				// Hedges have two attempts. Of the farther region's answers 40 % come after the timeout: they don't help, and cost. When the bucket
				// runs dry is chance: of 24 plays, those of the farther region came to 87 to 98 %, hedges to 84 to 94.
				least := map[string]float64{
					"a slow disk/beside": 0.96, "a slow disk/in place": 0.96, "a slow disk/hedges": 0.91,
					"a farther region/beside": 0.84, "a farther region/in place": 0.84, "a farther region/hedges": 0.78,
				}[name+"/"+kind]
				if t.Log(o); o.success < least || o.perCall > 1.5 {
					t.Errorf("%v; want %v with 1.5", o, least)
				}
			})
		}
	}
}

// Calls that come together, or seldom, and waits for a connection or a token end no help when one server hangs.
func TestHelps_BurstsAndWaits(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	hangs := traffic{policy: timeout100, rate: 50, deadline: time.Second, calm: ordinary, trouble: one(hanging)}
	bursts, rare, tokens := hangs, hangs, hangs
	bursts.burst, bursts.rate = 20, 20
	rare.rate, rare.quiet, rare.calls = 1./60, 10, 300
	tokens.dial = []grpc.DialOption{grpc.WithPerRPCCredentials(slowToken{testkit.NewTimes(0, 0, 4)})}
	tokensInPlace := tokens
	tokensInPlace.policy = inPlace100
	for name, c := range map[string]traffic{
		"bursts": bursts, "rare calls": rare, "tokens": tokens, "tokens, in place": tokensInPlace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o := c.play(t); o.success < 0.96 || o.perCall > 1.4 {
				t.Errorf("%v; want 96 %% with 1.4", o)
			} else {
				t.Log(o)
			}
		})
	}
}

// A third or a half of the servers hang, or calls come in bursts: the budget pays, since other calls overtake those that hang. With half of
// the servers, a call in sixteen meets only those that hang in its four attempts: round_robin doesn't know which they are.
func TestHelps_ManyHang(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	half := func(n int, times *testkit.Times) testserver.Step {
		if n < 2 {
			return testserver.Hang()
		}
		return ordinary(n, times)
	}
	usual := traffic{policy: timeout400, rate: 100, deadline: 2 * time.Second, calm: ordinary, trouble: one(hanging)}
	third, often, bursts, halves := usual, usual, usual, usual
	third.servers, third.rate = 3, 20
	often.servers, often.rate = 3, 200
	bursts.burst, bursts.rate, bursts.quiet, bursts.calls = 100, 10, 500, 3000
	halves.trouble = half
	for name, row := range map[string]struct {
		traffic
		least float64
	}{
		"one of three": {third, 0.97}, "one of three, 200 calls a second": {often, 0.97},
		"one of four, a hundred calls each 10 s": {bursts, 0.97}, "half of four": {halves, 0.97 * (1 - 1./16)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o := row.play(t); o.success < row.least {
				t.Errorf("%v; want %.1f %%", o, 100*row.least)
			} else {
				t.Log(o)
			}
		})
	}
}

// slowToken are credentials whose token takes 300 ms to come, for one attempt of ten.
type slowToken struct{ times *testkit.Times }

func (s slowToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if s.times.Chance() >= 0.1 {
		return map[string]string{"authorization": "Bearer x"}, nil
	}
	timer := time.NewTimer(300 * ms)
	defer timer.Stop()
	select {
	case <-timer.C:
		return map[string]string{"authorization": "Bearer new"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (slowToken) RequireTransportSecurity() bool { return false }

// Calls that wait for the first connection say nothing of the server: the next call is helped.
func TestHelps_AfterASlowConnection(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for name, file := range map[string]string{"beside": timeout100, "in place": inPlace100, "hedges": hedge100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := testkit.Must(interceptor.New(mustParse(t, entryOf(file)), quiet))(t)
				server, conn := dialSlowly(t, r, 700*ms)
				server.On(get, text("").Delay(30*ms))
				call := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					return conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{})
				}
				var waiting sync.WaitGroup
				for range 20 {
					waiting.Go(func() { testkit.NoError(t, call()) })
				}
				waiting.Wait()
				for range 5 {
					testkit.NoError(t, call())
				}
				server.On(get, testserver.Hang().Times(1), text("").Delay(30*ms))
				if err := call(); err != nil {
					t.Errorf("a call whose first attempt hangs: %v (%s)", err, reasonOf(err))
				}
			})
		})
	}
}

// A program that makes one call has its second attempt if the first one hangs, and the policy sends it in place of the first.
func TestHelps_FirstCall(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t)
		r := testkit.Must(interceptor.New(mustParse(t, entryOf(inPlace100)), quiet))(t)
		conn := server.Dial(t, r.DialOptions()...)
		server.On(get, testserver.Hang().Times(1), text("").Delay(30*ms))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{}); err != nil || server.Count(get) != 2 {
			t.Errorf("%v (%s) after %d requests; want the second to succeed", err, reasonOf(err), server.Count(get))
		}
	})
}

// Long polls that end at their deadline all night leave a full bucket, and cost the other methods nothing.
func TestHelps_PollsAtNight(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const poll = "/acme.orders.v1.OrderService/WatchOrders"
	for _, pollers := range []int{2, 4, 10} {
		for name, file := range map[string]string{"beside": timeout100, "retries": noTimeout, "hedges": hedge100} {
			t.Run(fmt.Sprint(pollers, "/", name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server := testserver.Start(t, testserver.Keep(0))
					own := entryOf(file)
					own += "  - name: [{service: acme.orders.v1.OrderService, method: WatchOrders}]\n    " + noTimeout + "\n"
					r := testkit.Must(interceptor.New(mustParse(t, own), quiet))(t)
					conn := server.Dial(t, r.DialOptions()...)
					server.On(get, text("").Delay(30*ms))
					server.On(poll, testserver.Hang())
					call := func(method string, within time.Duration) error {
						ctx, cancel := context.WithTimeout(t.Context(), within)
						defer cancel()
						return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
					}
					for range 10 {
						testkit.NoError(t, call(get, time.Second))
					}
					var polls sync.WaitGroup
					for range pollers {
						polls.Go(func() {
							for range 8 * 120 { // a night of polls of 30 s
								_ = call(poll, 30*time.Second)
							}
						})
					}
					polls.Wait()
					if b := inUse(r)[0]; b.Balance != b.Capacity || b.Balance < 4 {
						t.Errorf("in the morning, the bucket has %v of %v; want it full", b.Balance, b.Capacity)
					}
					server.On(get, testserver.Hang().Times(1), text("").Delay(30*ms))
					if err := call(get, time.Second); err != nil && name != "retries" {
						t.Errorf("a call whose first attempt hangs: %v (%s)", err, reasonOf(err))
					}
				})
			})
		}
	}
}
