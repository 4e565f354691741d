// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// at is how many attempts at a backend end, and how many of them are slow.
type at struct {
	backend        int
	attempts, slow int
}

// The log names the backends at which attempts are slow, in a line a minute.
func TestSlog_SlowBackends(t *testing.T) {
	t.Parallel()
	many := make([]at, 0, 6)
	for i := range 6 {
		many = append(many, at{i, 10, 10 - i})
	}
	for name, row := range map[string]struct {
		ended []at
		want  string // after 10.0.0.
	}{
		"one of three":                 {[]at{{1, 100, 1}, {3, 120, 37}, {2, 140, 0}}, "attempts at 3 were slow: 37 of 120, at others 1 of 240"},
		"the only one":                 {[]at{{3, 4, 4}}, "attempts at 3 were slow: 4 of 4"},
		"two of three":                 {[]at{{1, 5, 3}, {3, 5, 5}, {2, 5, 0}}, "attempts at 3 were slow: 5 of 5, at 1 3 of 5, at others 0 of 5"},
		"three names at most":          {many, "attempts at 0 were slow: 10 of 10, at 1 9 of 10, at 2 8 of 10, at others 18 of 30"},
		"none":                         {[]at{{1, 100, 0}}, ""},
		"a fifth, as a delay expects":  {[]at{{1, 100, 20}, {2, 100, 20}}, ""},
		"two, which may be accidental": {[]at{{1, 2, 2}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out synced
				o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
				end := func(b at) {
					for i := range b.attempts {
						o.Attempt(t.Context(), interceptor.Event{
							Target: "dns:///orders", Attempt: 1, SlowAttempt: i < b.slow, // the first is slow, and so all are counted
							Peer: &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(b.backend)), Port: 7002},
						})
					}
				}
				for range 2 { // minutes
					for _, b := range row.ended {
						end(b)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					got := out.take()
					want := ""
					if row.want != "" {
						want = fmt.Sprintf("msg=%q target=dns:///orders", "stagger: "+row.want)
					}
					got = strings.NewReplacer("10.0.0.", "", ":7002", "").Replace(got)
					if !strings.Contains(got, want) || (want == "") != (got == "") || strings.Count(got, "\n") > 1 {
						t.Errorf("logged %swant %s", got, want)
					}
				}
			})
		})
	}
}

// Quiet watches of a healthy backend, which end at their deadlines, are in no line about backends.
func TestSlog_SlowBackends_QuietWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const watch = "/acme.orders.v1.OrderService/WatchOrders"
		var out synced
		set := testkit.Must(policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: WatchOrders}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`)))(t)
		r := testkit.Must(interceptor.New(set, interceptor.WithObserver(observe.Slog(slog.New(slog.NewTextHandler(&out, nil))))))(t)
		server := testserver.Start(t)
		server.On(watch, testserver.Hang())
		conn := server.Dial(t, r.DialOptions()...)
		var watches sync.WaitGroup
		for range 100 {
			watches.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, watch)
				if err != nil {
					t.Error(err)
					return
				}
				testkit.NoError(t, stream.SendMsg(&emptypb.Empty{}))
				testkit.NoError(t, stream.CloseSend())
				if err := stream.RecvMsg(&emptypb.Empty{}); status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("%v; want the deadline", err)
				}
			})
		}
		watches.Wait()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := out.take(); strings.Contains(got, "attempts at") {
			t.Error(got)
		}
	})
}

// An attempt without a connection has no backend, and the number of backends is bounded.
func TestSlog_SlowBackends_Bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
		o.Attempt(t.Context(), interceptor.Event{Target: "dns:///orders", SlowAttempt: true})
		for i := range 1100 {
			o.Attempt(t.Context(), interceptor.Event{Target: "dns:///orders", SlowAttempt: true, Peer: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: i}})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := out.take(); !strings.Contains(got, "attempts at other were slow: 100 of 100, at others 1000 of 1000") {
			t.Error(got)
		}
	})
}

// The log names the backends at which attempts fail, with the code of most of them. Errors about the request aren't failures, nor are hedges
// that lost, and a slow attempt counts as slow only.
func TestSlog_FailingBackends(t *testing.T) {
	t.Parallel()
	type ended struct {
		backend, n int
		code       codes.Code
		slow       bool
	}
	for name, row := range map[string]struct {
		ended []ended
		want  []string // after 10.0.0.
	}{
		"one of three": {
			[]ended{{2, 268, codes.Unavailable, false}, {1, 400, codes.OK, false}, {3, 369, codes.NotFound, false}},
			[]string{"attempts at 2 failed: 268 of 268 (UNAVAILABLE), at others 0 of 769"},
		},
		"two codes": {
			[]ended{{2, 2, codes.Unavailable, false}, {2, 5, codes.Internal, false}, {1, 4, codes.Unknown, false}},
			[]string{"attempts at 2 failed: 7 of 7 (INTERNAL), at 1 4 of 4 (UNKNOWN)"},
		},
		"slow": {
			[]ended{{2, 5, codes.DeadlineExceeded, true}, {1, 5, codes.Canceled, false}},
			[]string{"attempts at 2 were slow: 5 of 5, at others 0 of 5"},
		},
		"both": {
			[]ended{{2, 5, codes.DeadlineExceeded, true}, {2, 5, codes.Internal, false}},
			[]string{"attempts at 2 were slow: 5 of 10", "attempts at 2 failed: 5 of 10 (INTERNAL)"},
		},
		"a fifth":            {[]ended{{2, 20, codes.Internal, false}, {2, 80, codes.OK, false}}, nil},
		"about the requests": {[]ended{{2, 20, codes.NotFound, false}, {2, 80, codes.Canceled, false}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out synced
				o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
				for _, e := range row.ended {
					for range e.n {
						o.Attempt(t.Context(), interceptor.Event{
							Target: "dns:///orders", Attempt: 1, Code: e.code, SlowAttempt: e.slow,
							Peer: &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(e.backend)), Port: 7002},
						})
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				got := strings.NewReplacer("10.0.0.", "", ":7002", "").Replace(out.take())
				for _, want := range row.want {
					if !strings.Contains(got, fmt.Sprintf("level=WARN msg=%q target=dns:///orders\n", "stagger: "+want)) {
						t.Errorf("logged %swant %s", got, want)
					}
				}
				if strings.Count(got, "\n") != len(row.want) {
					t.Errorf("logged %swant %d lines", got, len(row.want))
				}
			})
		})
	}
}
