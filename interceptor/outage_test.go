// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// playOutage plays a test whose calls are safe and wait for connections as they do by default.
func playOutage(t *testing.T, test func(t *testing.T, s scene)) {
	t.Helper()
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("*", text("here"))
		test(t, s)
	})
}

// took is how long a call takes, and how it ends.
func (s scene) took(t *testing.T, kind string) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	err := s.once(t.Context(), kind, get)
	return time.Since(began), err
}

// mustWait makes a call that succeeds when the server is back, after half a second: the call waits for that.
func (s scene) mustWait(t *testing.T) {
	t.Helper()
	time.AfterFunc(500*ms, s.Up)
	if took, err := s.took(t, "unary"); err != nil || took > 4*time.Second {
		t.Errorf("%v after %v; want a call that waits until the server is back", err, took)
	}
}

// mustFail makes calls of both kinds that fail at once.
func (s scene) mustFail(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"unary", "stream"} {
		if took, err := s.took(t, kind); reasonOf(err) != policy.ReasonNotConnected || took > 300*ms {
			t.Errorf("%s: %v (%s) after %v; want not_connected within 300 ms", kind, err, reasonOf(err), took)
		}
	}
}

func TestOutage_Old(t *testing.T) {
	playOutage(t, func(t *testing.T, s scene) {
		s.leave()
		if took, err := s.took(t, "unary"); reasonOf(err) != policy.ReasonNotConnected || took != 3*time.Second {
			t.Errorf("%v after %v; want the first call to wait for 3 s", err, took)
		}
		time.Sleep(time.Second)
		if took, err := s.took(t, "unary"); reasonOf(err) != policy.ReasonNotConnected || took < 900*ms || took > time.Second {
			t.Errorf("%v after %v; want no wait past the age of 5 s", err, took)
		}
		for range 100 { // calls keep the channel from becoming idle
			time.Sleep(time.Minute)
			s.mustFail(t)
		}
	})
}

// Each outage has an age of its own, even if no call was made between the two.
func TestOutage_Twice(t *testing.T) {
	for _, apart := range []time.Duration{10 * time.Second, time.Hour} {
		t.Run(apart.String(), func(t *testing.T) {
			playOutage(t, func(t *testing.T, s scene) {
				s.leave()
				_, _ = s.took(t, "unary")
				time.Sleep(7 * time.Second)
				s.mustFail(t)
				s.Up()
				for s.conn.GetState() != connectivity.Ready {
					s.conn.WaitForStateChange(t.Context(), s.conn.GetState())
				}
				time.Sleep(apart)
				s.leave()
				s.mustWait(t)
			})
		})
	}
}

func TestOutage_Idle(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, s scene){
		"after a call": func(t *testing.T, s scene) { _, _ = s.took(t, "unary") },
		"after an outage": func(t *testing.T, s scene) {
			s.leave()
			_, _ = s.took(t, "unary")
			time.Sleep(7 * time.Second)
			s.mustFail(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			playOutage(t, func(t *testing.T, s scene) {
				before(t, s)
				time.Sleep(time.Hour)
				if state := s.conn.GetState(); state != connectivity.Idle {
					t.Fatalf("the channel is %v; want IDLE", state)
				}
				s.Down()
				s.mustWait(t)
			})
		})
	}
}

// A channel with another backend is usable: calls don't wait.
func TestOutage_OneOfTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		r := mustNew(t, mustSet(t, config(plain())), withJournal(j), interceptor.WithRandom(func() float64 { return 0 }))
		servers := []*testserver.Server{testserver.Start(t), testserver.Start(t)}
		conn, err := testserver.DialAll(servers, append(r.DialOptions(), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for _, s := range servers {
			s.On("*", text("here"))
		}
		conn.Connect()
		time.Sleep(time.Second)
		servers[0].Down()
		for range 100 {
			if took, err := (scene{conn: conn}).took(t, "unary"); err != nil || took > 100*ms {
				t.Errorf("%v after %v; want no wait for a connection", err, took)
			}
			time.Sleep(100 * ms)
		}
		if n := r.Outages(); n != 0 {
			t.Errorf("%d outages; want none", n)
		}
	})
}

// Many channels to one target have outages of their own, none of which is kept when its channel works again, or is closed.
func TestOutage_Channels(t *testing.T) {
	testkit.Long(t)
	const channels = 300
	playOutage(t, func(t *testing.T, s scene) {
		s.Down()
		conns := make([]*grpc.ClientConn, channels)
		call := func(i int) (time.Duration, error) { return scene{conn: conns[i]}.took(t, "unary") }
		var calls sync.WaitGroup
		for i := range conns {
			conns[i] = s.Dial(t, s.retrier.DialOptions()...)
			calls.Go(func() {
				if took, err := call(i); reasonOf(err) != policy.ReasonNotConnected || took > 3100*ms {
					t.Errorf("%v after %v; want not_connected by 3 s", err, took)
				}
			})
		}
		calls.Wait()
		time.Sleep(7 * time.Second)
		for i := range conns {
			if took, err := call(i); reasonOf(err) != policy.ReasonNotConnected || took > 0 {
				t.Fatalf("%v after %v; want not_connected at once", err, took)
			}
		}
		if n := s.retrier.Outages(); n != channels {
			t.Errorf("%d outages; want %d", n, channels)
		}
		for _, conn := range conns[:channels/2] {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := s.retrier.Outages(); n != channels/2 {
			t.Errorf("%d outages after half of the channels were closed; want %d", n, channels/2)
		}
		s.Up()
		time.Sleep(time.Minute)
		if n := s.retrier.Outages(); n != 0 {
			t.Errorf("%d outages after the end; want none", n)
		}
	})
}

// A backend that says by its health service that it does not serve is no better than one that is away.
func TestOutage_NotServing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checked := health.NewServer()
		server := testserver.Start(t, testserver.Register(func(r grpc.ServiceRegistrar) { healthpb.RegisterHealthServer(r, checked) }))
		server.On(get, text("here"))
		r := mustNew(t, mustSet(t, config(plain())), quiet, interceptor.WithRandom(func() float64 { return 0 }))
		s := scene{Server: server, conn: server.Dial(t, append(r.DialOptions(), grpc.WithDefaultServiceConfig(
			`{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}`))...)}
		if took, err := s.took(t, "unary"); err != nil || took != 0 {
			t.Fatalf("%v after %v", err, took)
		}
		checked.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		synctest.Wait()
		time.AfterFunc(time.Second, func() { checked.SetServingStatus("", healthpb.HealthCheckResponse_SERVING) })
		if took, err := s.took(t, "unary"); err != nil || took < time.Second || took > 4*time.Second {
			t.Errorf("%v after %v; want a call that waits until the server serves again", err, took)
		}
		checked.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		synctest.Wait()
		_, _ = s.took(t, "unary")
		time.Sleep(7 * time.Second)
		s.mustFail(t)
	})
}

// A call that waits for a connection has sent nothing: no retry is told of or counted before it does, and the budget pays for none.
func TestOutage_WaitIsNoRetry(t *testing.T) {
	for _, kind := range []string{"unary", "stream"} {
		t.Run(kind, func(t *testing.T) {
			play(t, budgeted(bucketOf(50)), func(t *testing.T, s scene) {
				s.On("*", text("here"))
				var told []string
				tell := func(what string) func(context.Context, interceptor.Event) {
					return func(_ context.Context, e interceptor.Event) { told = append(told, what+" "+string(e.Reason)) }
				}
				s.retrier.AddObserver(interceptor.Observer{Decision: tell("decision"), Wait: tell("wait"), Sent: tell("sent")})
				expect := func(err error, want ...string) {
					t.Helper()
					if synctest.Wait(); !slices.Equal(told, want) {
						t.Errorf("%v: %q; want %q", err, told, want)
					}
					if b := s.retrier.State().Budgets; b[0].Granted != 0 || b[0].Balance != 50 {
						t.Errorf("%+v; want no permit", b[0])
					}
					told = nil
				}
				s.leave()
				time.AfterFunc(500*ms, s.Up)
				_, err := s.took(t, kind)
				expect(err, "wait retry", "sent retry")
				s.leave()
				_, err = s.took(t, kind)
				expect(err, "wait retry", "decision not_connected")
				time.Sleep(10 * time.Second)
				_, err = s.took(t, kind)
				expect(err, "decision not_connected") // the outage is too old for a wait
			})
		})
	}
}

// Workers that each make one call after the other spend all their calls' time, or the budget, for a minute, and are back at once: a
// crowd of few callers earns little, so nothing of the outage may stay behind.
func TestOutage_Workers(t *testing.T) {
	testkit.Long(t)
	for name, fault := range map[string]testserver.Step{"hangs": testserver.Hang(), "fails": down()} {
		t.Run(name, func(t *testing.T) {
			retry := policytest.UsualRetry()
			retry.PerAttemptTimeout = 200 * ms
			play(t, config(retry), func(t *testing.T, s scene) {
				const workers = 8
				healthy := text("here").Delay(50 * ms)
				s.On("*", healthy)
				var calls, good atomic.Int64
				var running sync.WaitGroup
				over := make(chan struct{})
				for range workers {
					running.Go(func() {
						for open := true; open; {
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							_, err := s.call(ctx, get)
							cancel()
							if calls.Add(1); err == nil {
								good.Add(1)
							} else {
								time.Sleep(100 * ms) // as a worker that logs and goes on
							}
							select {
							case <-over:
								open = false
							default:
							}
						}
					})
				}
				during := func(length time.Duration) (called, served, sent int64) {
					called, served, sent = calls.Load(), good.Load(), int64(s.Count("*"))
					time.Sleep(length)
					return calls.Load() - called, good.Load() - served, int64(s.Count("*")) - sent
				}
				time.Sleep(25 * ms) // so that no call ends in the moment in which they are counted
				_, usual, _ := during(15 * time.Second)
				s.On("*", fault)
				called, _, sent := during(time.Minute)
				if float64(sent) > 1.25*float64(called) {
					t.Errorf("%d requests for %d calls in the outage", sent, called)
				}
				s.On("*", healthy)
				during(2 * time.Second)
				if _, served, _ := during(15 * time.Second); served < usual*95/100 {
					t.Errorf("%d calls succeed in 15 s, %d before the outage", served, usual)
				}
				s.On("*", down().Times(1), healthy)
				if called, served, _ := during(time.Second); called != served {
					t.Errorf("%d of %d calls succeed where one fails once: nothing pays for its retry", served, called)
				}
				close(over)
				running.Wait()
			})
		})
	}
}

// A service in the middle is called with a deadline while the last one restarts, and waits for it for three quarters of that. All
// other callers know the error 10 ms before the deadline at the latest, and can do without: docs/evidence/outages.md.
func TestOutage_Inbound(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, deadline := range []time.Duration{500 * ms, 2 * time.Second, 5 * time.Second} {
		for _, away := range []time.Duration{300 * ms, 2 * time.Second} { // which gRPC sees the end of after 1 and 2.6 s
			t.Run(fmt.Sprint(deadline, " ", away), func(t *testing.T) {
				t.Parallel()
				var r inboundRestart
				synctest.Test(t, func(t *testing.T) { r.play(t, deadline, away) })
				if r.told != r.calls-r.answered {
					t.Errorf("%d of %d calls fail, %d are told in time; want all", r.calls-r.answered, r.calls, r.told)
				}
			})
		}
	}
}

// inboundRestart is what becomes of the calls to the service in the middle.
type inboundRestart struct {
	mu                    sync.Mutex
	calls, answered, told int
}

func (r *inboundRestart) play(t *testing.T, deadline, away time.Duration) {
	last := testserver.Start(t)
	last.On("*", text("here"))
	retrier := mustNew(t, mustSet(t, config(policytest.UsualRetry())), quiet)
	below := last.Dial(t, retrier.DialOptions()...)
	middle := testserver.Start(t, testserver.ServerOptions(retrier.ServerOptions()...),
		testserver.Register(unaryOrders(func(ctx context.Context) error { return ask(ctx, below, true) })))
	conn := middle.Dial(t)
	below.Connect()
	time.Sleep(time.Second)
	last.Down()
	time.AfterFunc(away, last.Up)
	var running sync.WaitGroup
	seen := time.Second // when gRPC connects again
	if away > time.Second {
		seen = 2600 * ms
	}
	for end := time.Now().Add(seen); time.Now().Before(end); time.Sleep(10 * ms) {
		r.calls++
		running.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			err := conn.Invoke(ctx, get, wrapperspb.String(""), new(wrapperspb.StringValue))
			left, _ := ctx.Deadline()
			late := time.Until(left) < 10*ms
			r.mu.Lock()
			defer r.mu.Unlock()
			switch {
			case err == nil && !late:
				r.answered++
			case status.Code(err) == codes.Unavailable && !late:
				r.told++
			}
		})
	}
	running.Wait()
}

// Nothing listens, and the deadline is short. The call ends with UNAVAILABLE and the error of the last connection, also if its goroutine wakes
// too late to end the wait before the deadline.
func TestOutage_ShortDeadline(t *testing.T) {
	for _, deadline := range []time.Duration{50 * ms, 300 * ms, time.Second, 2 * time.Second} {
		for _, late := range []time.Duration{0, ms, 2 * ms, 20 * ms} {
			for kind, desc := range callKinds {
				t.Run(fmt.Sprintf("%v, %v late, %s", deadline, late, kind), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						lag := interceptor.WithRandom(func() float64 { // asked at each wake
							time.Sleep(late)
							return 0
						})
						r := mustNew(t, mustSet(t, config(plain())), quiet, lag)
						conn := over(t, r, nil, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
							return nil, errors.New("connection refused")
						}))
						ctx, cancel := context.WithTimeout(t.Context(), deadline)
						defer cancel()
						err := exchange(ctx, conn, desc, get)
						if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "connection refused") {
							t.Errorf("%v (%s)", err, reasonOf(err))
						}
					})
				})
			}
		}
	}
}
