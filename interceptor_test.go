// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package stagger_test is the specification of this module, to read from top to bottom: the result of a
// failing call, and its timing. Everything uses the public API, over real gRPC connections in
// memory, in virtual time: delays are exact.
package stagger_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The policy of all tests below. Calls wait half of each backoff, because the random source returns ½: 50 ms,
// 100 ms, 200 ms after most codes, and 500 ms, 1 s, 2 s after RESOURCE_EXHAUSTED.
const orders = `
budgets:
  - name: orders
    bucket: {size: 10, slowCost: 5}
methodConfig:
  - name:
      - {service: acme.orders.v1.OrderService, method: GetOrder}
    retryPolicy:
      maxAttempts: 4
      initialBackoff: 0.1s
      maxBackoff: 5s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED]
      perAttemptTimeout: 1s
      budget: orders
      perCode:
        - {codes: [RESOURCE_EXHAUSTED], initialBackoff: 1s, maxBackoff: 30s}
  - name:
      - {service: acme.orders.v1.OrderService}
    retryPolicy:
      maxAttempts: 4
      initialBackoff: 0.1s
      maxBackoff: 5s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE]
      budget: orders
`

const (
	getOrder    = "/acme.orders.v1.OrderService/GetOrder"    // idempotent: its entry names it
	createOrder = "/acme.orders.v1.OrderService/CreateOrder" // not declared idempotent
	ms          = time.Millisecond
)

// scene is a client with the policy above, and its server.
type scene struct {
	*testserver.Server
	conn *grpc.ClientConn
}

// stage runs play in virtual time, in a bubble of its own.
func stage(t *testing.T, play func(t *testing.T, s scene)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := testkit.Must(policy.Parse("orders.yaml", []byte(orders)))(t)
		retrier := testkit.Must(interceptor.New(set, interceptor.WithRandom(func() float64 { return 0.5 }), interceptor.WithObserver(quiet)))(t)
		srv := testserver.Start(t)
		play(t, scene{srv, srv.Dial(t, retrier.DialOptions()...)})
	})
}

// quiet receives the warnings of the policy, so that they don't go to the default logger.
var quiet = interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}}

// tell makes a call, and returns its end: code, attempts, duration and reason; then the times between the attempts that the server saw.
func (s scene) tell(ctx context.Context, method string, opts ...grpc.CallOption) string {
	began := time.Now()
	err := s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, opts...)
	end := fmt.Sprint("OK after ", time.Since(began))
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		end = fmt.Sprintf("%v after %v: %s", status.Code(err), e.Elapsed, e.Reason)
		if status.Code(err) != codes.DeadlineExceeded { // client and server are as fast at the deadline, and have different words for it
			end = status.Convert(err).Message() + ", " + end
		}
	}
	var (
		waits []time.Duration
		last  time.Time
	)
	for _, a := range s.Attempts() {
		if a.Method != method {
			continue
		}
		if !last.IsZero() {
			waits = append(waits, a.Time.Sub(last))
		}
		last = a.Time
	}
	return fmt.Sprint(end, ", ", waits)
}

// learn makes three calls of a method that are answered at once. So it is known that the method is fast.
func (s scene) learn(t *testing.T, method string) {
	t.Helper()
	s.On(method, testserver.OK())
	for range 8 {
		testkit.NoError(t, s.conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	s.Reset()
}

func TestCall(t *testing.T) {
	t.Parallel()
	down, full, slow := testserver.Fail(codes.Unavailable, "down"), testserver.Fail(codes.ResourceExhausted, "full"), testserver.Hang()
	type script []testserver.Step
	for name, row := range map[string]struct {
		method   string        // "": GetOrder
		deadline time.Duration // 0: an hour
		known    bool          // it is known that the method is fast
		opts     []grpc.CallOption
		script   script
		want     string
	}{
		"UNAVAILABLE is retried with backoff": {
			script: script{down.Times(2), testserver.OK()},
			want:   "OK after 150ms, [50ms 100ms]",
		},
		"an outage ends the call with the server's error": {
			script: script{down},
			want:   "down, Unavailable after 350ms: attempts_exhausted, [50ms 100ms 200ms]",
		},
		"RESOURCE_EXHAUSTED has a longer scale": {
			script: script{full},
			want:   "full, ResourceExhausted after 3.5s: attempts_exhausted, [500ms 1s 2s]",
		},
		"the server's delay, half of 10 % more, and from anew": {
			script: script{full.Pushback("8000"), full, testserver.OK()},
			want:   "OK after 8.9s, [8.4s 500ms]",
		},
		"at least the server's delay, half of it more, and from anew": {
			script: script{full.RetryInfo(8 * time.Second), full, testserver.OK()},
			want:   "OK after 12.5s, [12s 500ms]",
		},
		"a slow attempt is given up for another": {
			known: true, script: script{slow.Times(1), testserver.OK()},
			want: "OK after 1.05s, [1.05s]",
		},
		"after a timeout an attempt costs five of the ten": {
			known: true, deadline: 10 * time.Second, script: script{slow},
			want: "DeadlineExceeded after 10s: budget_exhausted, [1.05s 1.1s]",
		},
		"a slow attempt of a method that nobody knows": {
			deadline: 10 * time.Second, script: script{slow},
			want: "DeadlineExceeded after 10s: not_proven_fast, []",
		},
		"the server's DEADLINE_EXCEEDED, while there is time": {
			script: script{testserver.Fail(codes.DeadlineExceeded), testserver.OK()},
			want:   "OK after 50ms, [50ms]",
		},
		"a backoff that would pass the deadline": {
			deadline: 200 * ms, script: script{down},
			want: "down, Unavailable after 150ms: deadline_too_close, [50ms 100ms]",
		},
		"a call that isn't idempotent": {
			method: createOrder, script: script{down},
			want: "down, Unavailable after 0s: not_idempotent, []",
		},
		"declared idempotent by its caller": {
			method: createOrder, opts: []grpc.CallOption{interceptor.Idempotent()}, script: script{down, testserver.OK()}, want: "OK after 50ms, [50ms]",
		},
		"pushback: at once": {
			script: script{down.Pushback("0"), down},
			want:   "down, Unavailable after 150ms: attempts_exhausted, [0s 50ms 100ms]",
		},
		"pushback: a delay": {
			script: script{down.Pushback("1000"), down},
			want:   "down, Unavailable after 1.2s: attempts_exhausted, [1.05s 50ms 100ms]",
		},
		"pushback: never":            {script: script{down.Pushback("-1")}, want: "down, Unavailable after 0s: pushback_stop, []"},
		"pushback: nonsense":         {script: script{down.Pushback("soon")}, want: "down, Unavailable after 0s: pushback_stop, []"},
		"pushback: two values":       {script: script{down.Pushback("7", "8")}, want: "down, Unavailable after 0s: pushback_stop, []"},
		"pushback: over 300 seconds": {script: script{down.Pushback("300001")}, want: "down, Unavailable after 0s: pushback_stop, []"},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				method := cmp.Or(row.method, getOrder)
				if row.known {
					s.learn(t, method)
				}
				s.On(method, row.script...)
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(row.deadline, time.Hour))
				defer cancel()
				if got := s.tell(ctx, method, row.opts...); got != row.want {
					t.Errorf("%s\nwant %s", got, row.want)
				}
			})
		})
	}
}

func TestCancellingDuringABackoffReturnsAtOnce(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.Unavailable, "the disk is full").Pushback("60000"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(7*time.Second, cancel)
		const want = "context canceled before attempt 2, Canceled after 7s: cancelled, []"
		if got := s.tell(ctx, getOrder); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

func TestTheBudgetRunsDryAndFillsAgain(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.Unavailable, "down"))
		s.On(createOrder, testserver.Fail(codes.NotFound, "no such customer")) // an answer: not everything fails
		call := func() string {
			s.tell(t.Context(), createOrder)
			return s.tell(t.Context(), getOrder)
		}
		const calls = 100
		for range calls {
			call()
		}
		// The bucket holds ten. (The calls take a second together, in which time adds a tenth, and none succeeds.)
		if got := s.Count(getOrder) - calls; got != 10 {
			t.Errorf("%d extra attempts for %d calls; want 10", got, calls)
		}
		for _, want := range []string{"down, Unavailable after 0s: budget_exhausted, []", "down, Unavailable after 350ms: attempts_exhausted, [50ms 100ms 200ms]"} {
			s.Reset()
			if got := call(); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			time.Sleep(90 * time.Second) // virtual: time has added three
		}
	})
}

// One backend of two is broken: without refunds the bucket would be dry after 11 calls.
func TestExtraAttemptsThatSucceedCostNothing(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		for range 100 {
			s.Reset()
			s.On(getOrder, testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
			if got := s.tell(t.Context(), getOrder); got != "OK after 50ms, [50ms]" {
				t.Error(got)
			}
		}
	})
}

func TestAnUnsafeCallIsRepeatedWhenItNeverLeftTheClient(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(time.Second, s.Up)
		if got := s.tell(t.Context(), createOrder); !strings.HasPrefix(got, "OK") || s.Count(createOrder) != 1 {
			t.Errorf("%s; the server saw %d attempts; want 1", got, s.Count(createOrder))
		}
	})
}
