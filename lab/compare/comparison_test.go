// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/testkit"
)

// ticking is a meter with the same time for everything.
type ticking struct{ at time.Duration }

func (m *ticking) now() time.Duration     { m.at++; return m.at }
func (*ticking) processor() time.Duration { return 0 }
func (*ticking) allocated() (_, _ uint64) { return 0, 0 }

// quick is a plan with few operations.
func quick() options { return options{plan: plan{1, 1, new(ticking)}, waiting: 20} }

// sleep waits in a bubble's time.
func sleep(d time.Duration) { <-time.NewTimer(d).C }

// named returns the comparison with a name.
func named(t *testing.T, name string) comparison {
	t.Helper()
	i := slices.IndexFunc(comparisons(), func(c comparison) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no comparison %q", name)
	}
	return comparisons()[i]
}

// opened returns a connected client of a comparison; it is closed when the test ends.
func (c comparison) opened(t *testing.T, k client) backend {
	t.Helper()
	c.clients = []client{k}
	all, stop, err := c.open()
	t.Cleanup(stop)
	testkit.NoError(t, err)
	return all[0]
}

// Each client makes the expected attempts, and nothing waits. Otherwise session fails, so that no table compares broken
// set-ups.
func TestClientsMakeTheAttemptsCompared(t *testing.T) {
	t.Parallel()
	for _, c := range comparisons() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				rows := testkit.Must(c.rows(quick()))(t)
				columns := len(c.table().columns)
				for i, r := range rows {
					if r.Name != c.clients[i].name || len(r.Values) != columns {
						t.Errorf("row %d is %s with %d values; want %s with %d", i, r.Name, len(r.Values), c.clients[i].name, columns)
					}
				}
				if took := time.Since(began); took > time.Millisecond {
					t.Errorf("took %v; nothing is to wait", took)
				}
			})
		})
	}
}

// Clients that are interceptors alone are measured on the connection of the first one, so that no connection is faster by luck.
func TestClientsShareAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own := []string{builtIn.name, throttled.name, bareMetrics.name, builtInMetrics.name}
		for _, c := range comparisons() {
			for _, k := range c.clients {
				made := testkit.Must(k.prepare(c.plan))(t)
				if made.shares == slices.Contains(own, k.name) {
					t.Errorf("%s, %s: it shares a connection: %v", c.name, k.name, made.shares)
				}
				if !made.shares || c.stub {
					continue
				}
				s := serve(succeed, c.stream.do)
				conn := testkit.Must(s.dial(nil))(t)
				_ = conn.Close() // so that calls on it fail
				err := made.on(conn)(t.Context(), method, wrapperspb.String(""), wrapperspb.String(""))
				if c.stream.do != nil {
					err = streaming(made.streamsOn(conn), c.stream)()
				}
				if status.Code(err) != codes.Canceled {
					t.Errorf("%s, %s: %v on a connection that is closed; want CANCELLED", c.name, k.name, err)
				}
				s.Stop()
			}
		}
	})
}

func TestOtherSetUpIsNotCompared(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, want string
		change     func(*comparison)
	}{
		{"one failure", "gRPC, no retries: rpc error: code = Unavailable desc = no", func(c *comparison) { c.clients = append(c.clients, bare) }},
		{"success", "gRPC's retries: 2 attempts for 1 operations; want 1", func(c *comparison) { c.answer, c.clients = failOdd, []client{builtIn} }},
		{"one failure, stub", "stagger: 1 attempts for 1 operations; want 2", func(c *comparison) { c.answer, c.clients = succeed, []client{stagger} }},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := named(t, x.name)
			x.change(&c)
			if _, err := c.rows(quick()); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v; want %s", x.name, err, x.want)
			}
		})
	}
}

// Clients with their own limits reach them at the same point.
func TestClientsRetryAlike(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]answer{"one failure": fail, "server stream": failOdd, "client stream": failOdd} {
		c := named(t, name)
		c.answer = answer
		for _, k := range c.clients {
			synctest.Test(t, func(t *testing.T) {
				b := c.opened(t, k)
				want, code := int64(eager.Attempts), codes.Unavailable
				if c.stream.do != nil {
					want, code = 2, codes.OK
				}
				switch k.name {
				case bare.name:
					want, code = 1, codes.Unavailable
				case twice.name:
					want = 2
				}
				if err := b.operation()(); status.Code(err) != code || b.attempts() != want {
					t.Errorf("%s, %s: %v after %d attempts; want %v after %d", name, k.name, err, b.attempts(), code, want)
				}
			})
		}
	}
}

// stagger hedges only when the usual latency is known, so its hedges are compared at once.
func TestHedgeIsSentWhenDue(t *testing.T) {
	t.Parallel()
	for k, delay := range map[*client]time.Duration{&hedges: time.Minute, &ourHedges: atOnce} {
		synctest.Test(t, func(t *testing.T) {
			c := named(t, "hedge sent")
			c.plan.Initial = delay
			b, began := c.opened(t, *k), time.Now()
			if err := b.repeat(1)(3); err != nil || time.Since(began).Round(time.Microsecond) != 3*delay.Round(time.Microsecond) {
				t.Errorf("%s: %v after %v; want 3 times %v", k.name, err, time.Since(began), delay)
			}
		})
	}
}

func TestAttemptTimeoutIsReached(t *testing.T) {
	t.Parallel()
	for _, k := range named(t, "timeout").clients[1:] {
		synctest.Test(t, func(t *testing.T) {
			c := named(t, "timeout")
			c.plan.AttemptTimeout, c.answer = time.Second, hangOdd
			b, began := c.opened(t, k), time.Now()
			if err := b.operation()(); err != nil || b.attempts() != 2 || time.Since(began).Round(100*time.Millisecond) != time.Second {
				t.Errorf("%s: %v after %v and %d attempts; want success after a second and 2", k.name, err, time.Since(began), b.attempts())
			}
		})
	}
}

// The allocations of stagger's metrics are compared with gRPC's. A success has few: it is counted while it runs, and when it has ended.
func TestMetricsAllocateLittle(t *testing.T) {
	for name, most := range map[string]float64{"success, metrics": 6, "one failure, metrics": 70} {
		c := named(t, name)
		allocated := make([]float64, len(c.clients))
		for i, k := range c.clients {
			do := c.opened(t, k).operation()
			allocated[i] = testing.AllocsPerRun(500, func() {
				testkit.NoError(t, do())
			})
		}
		theirs, own := allocated[1]-allocated[0], allocated[3]-allocated[2]
		t.Logf("%s: gRPC's metrics add %v allocations, stagger's %v", name, theirs, own)
		if theirs < 10 || own > min(1.1*theirs, most) || name == "one failure, metrics" && own < 2 {
			t.Errorf("%s: gRPC's metrics add %v allocations, stagger's %v; want at most a tenth more, few for a success, and some for a failure", name, theirs, own)
		}
	}
}

// Calls that are measured while they wait are retried at the end.
func TestWaitingCallsAreRetried(t *testing.T) {
	t.Parallel()
	const calls = 200
	for _, k := range waitingClients {
		synctest.Test(t, func(t *testing.T) {
			c := comparison{plan: patient, answer: func(_ context.Context, n int64) error {
				if n <= calls {
					return errUnavailable
				}
				return nil
			}}
			b, ended := c.opened(t, k), make(chan error, calls)
			for range calls {
				go func() { ended <- b.operation()() }()
			}
			sleep(never * 3 / 4) // gRPC's backoff varies by a fifth
			if b.attempts() != calls || len(ended) > 0 {
				t.Errorf("%s: %d attempts, %d calls ended; want %d waiting", k.name, b.attempts(), len(ended), calls)
			}
			sleep(never / 2)
			if b.attempts() != 2*calls || len(ended) != calls {
				t.Errorf("%s: %d attempts, %d calls ended; want %d retried", k.name, b.attempts(), len(ended), calls)
			}
			for range calls {
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", k.name, err)
				}
			}
		})
	}
}
