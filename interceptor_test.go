// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package stagger_test is the specification of this module, to read from top to bottom: the result of a
// failing call, and its timing. Everything uses the public API, over real gRPC connections in
// memory, in virtual time: delays are exact.
package stagger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The policy of all tests below. Calls wait half of each backoff, because the random source returns ½: 50 ms,
// 100 ms, 200 ms after most codes, and 500 ms, 1 s, 2 s after RESOURCE_EXHAUSTED.
const orders = `
budgets:
  - name: orders
    ratio: {percent: 10, minPerSecond: 1, window: 10s}
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
		set := must.Get(policy.Parse("orders.yaml", []byte(orders)))(t)
		retrier := must.Get(interceptor.New(set, inside.Random(func() float64 { return 0.5 }).(interceptor.Option), interceptor.WithObserver(quiet)))(t)
		srv := testserver.Start(t)
		play(t, scene{srv, srv.Dial(t, retrier.DialOptions()...)})
	})
}

// quiet receives the warnings of the policy, so that they don't go to the default logger.
var quiet = interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}}

func (s scene) call(ctx context.Context, method string, opts ...grpc.CallOption) error {
	return s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, opts...)
}

// waits are the times between the attempts that the server saw.
func (s scene) waits() string {
	var list []time.Duration
	attempts := s.Attempts()
	for i := 1; i < len(attempts); i++ {
		list = append(list, attempts[i].Time.Sub(attempts[i-1].Time))
	}
	return fmt.Sprint(list)
}

// wantEnd checks a call's code and stagger's details.
func wantEnd(t *testing.T, err error, code codes.Code, attempts int, elapsed time.Duration, reason policy.Reason) {
	t.Helper()
	e, ok := errors.AsType[*interceptor.Error](err)
	if !ok {
		t.Fatalf("error %v is no *interceptor.Error", err)
	}
	if status.Code(err) != code || e.Attempts != attempts || e.Elapsed != elapsed || e.Reason != reason {
		t.Errorf("%v after %d attempts and %v: %s; want %v after %d and %v: %s",
			status.Code(err), e.Attempts, e.Elapsed, e.Reason, code, attempts, elapsed, reason)
	}
}

func TestUnavailableIsRetriedWithBackoff(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.Unavailable).Times(2), testserver.OK())
		must.Do(t, s.call(t.Context(), getOrder))
		if got := s.waits(); got != "[50ms 100ms]" {
			t.Errorf("waits %s; want half of 100 ms, then of 200 ms", got)
		}
	})
}

func TestUnavailableThatLastsEndsWithTheServersError(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.Unavailable, "the disk is full"))
		err := s.call(t.Context(), getOrder)
		wantEnd(t, err, codes.Unavailable, 4, 350*ms, policy.ReasonAttemptsExhausted)
		if got := status.Convert(err).Message(); got != "the disk is full" {
			t.Errorf("message %q; want the server's own", got)
		}
		if got := s.waits(); got != "[50ms 100ms 200ms]" {
			t.Errorf("waits %s", got)
		}
	})
}

func TestResourceExhaustedHasALongerScale(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.ResourceExhausted))
		wantEnd(t, s.call(t.Context(), getOrder), codes.ResourceExhausted, 4, 3500*ms, policy.ReasonAttemptsExhausted)
		if got := s.waits(); got != "[500ms 1s 2s]" {
			t.Errorf("waits %s", got)
		}
	})
}

func TestResourceExhaustedWaitsAsLongAsTheServerSays(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder,
			testserver.Fail(codes.ResourceExhausted).RetryInfo(8*time.Second),
			testserver.Fail(codes.ResourceExhausted),
			testserver.OK())
		must.Do(t, s.call(t.Context(), getOrder))
		// 8 s and half of the additional 10 %; then the backoff restarts.
		if got := s.waits(); got != "[8.4s 500ms]" {
			t.Errorf("waits %s", got)
		}
	})
}

func TestASlowAttemptIsGivenUpForAnother(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Hang().Times(1), testserver.OK())
		must.Do(t, s.call(t.Context(), getOrder))
		// The timeout of 1 s, then the backoff, during which the first attempt still runs.
		if got := s.waits(); got != "[1.05s]" {
			t.Errorf("waits %s", got)
		}
	})
}

func TestASlowAttemptThatMayNotBeRepeatedRunsToTheDeadline(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		// An extra attempt after a timeout costs five: the reserve of ten pays for two.
		wantEnd(t, s.call(ctx, getOrder), codes.DeadlineExceeded, 3, 10*time.Second, policy.ReasonBudgetExhausted)
		if got := s.waits(); got != "[1.05s 1.1s]" {
			t.Errorf("waits %s", got)
		}
	})
}

func TestDeadlineExceededFromTheServerIsRetriedWhileTheCallHasRoom(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.DeadlineExceeded).Times(1), testserver.OK())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		must.Do(t, s.call(ctx, getOrder))
		if got := s.waits(); got != "[50ms]" {
			t.Errorf("waits %s", got)
		}
	})
}

func TestABackoffThatWouldPassTheDeadlineEndsAtOnceWithTheServersError(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.Unavailable))
		ctx, cancel := context.WithTimeout(t.Context(), 200*ms)
		defer cancel()
		// 50 ms and 100 ms fit, 200 ms more would not: the call ends 50 ms before its deadline.
		wantEnd(t, s.call(ctx, getOrder), codes.Unavailable, 3, 150*ms, policy.ReasonDeadlineTooClose)
	})
}

func TestCancellingDuringABackoffReturnsAtOnce(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.Unavailable, "the disk is full").Pushback("60000"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(7*time.Second, cancel)
		wantEnd(t, s.call(ctx, getOrder), codes.Canceled, 1, 7*time.Second, policy.ReasonCancelled)
	})
}

func TestTheBudgetRunsDryAndFillsAgain(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(getOrder, testserver.Fail(codes.Unavailable))
		const calls = 100
		for range calls {
			_ = s.call(t.Context(), getOrder)
		}
		// The reserve of ten, and a tenth of an attempt for each call. (The calls take less than
		// a window together, and no extra attempt has succeeded.)
		if got := s.Count(getOrder) - calls; got != 20 {
			t.Errorf("%d extra attempts for %d calls; want 20", got, calls)
		}
		wantEnd(t, s.call(t.Context(), getOrder), codes.Unavailable, 1, 0, policy.ReasonBudgetExhausted)

		time.Sleep(11 * time.Second) // virtual: the window has passed, and the reserve is back
		wantEnd(t, s.call(t.Context(), getOrder), codes.Unavailable, 4, 350*ms, policy.ReasonAttemptsExhausted)
	})
}

func TestExtraAttemptsThatSucceedCostNothing(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		// One backend of two is broken: without refunds the budget would be dry after 20 calls.
		for range 100 {
			s.On(getOrder, testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
			must.Do(t, s.call(t.Context(), getOrder))
		}
	})
}

func TestAnUnsafeCallIsNotRepeated(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(createOrder, testserver.Fail(codes.Unavailable))
		wantEnd(t, s.call(t.Context(), createOrder), codes.Unavailable, 1, 0, policy.ReasonNotIdempotent)
		if got := s.Count(createOrder); got != 1 {
			t.Errorf("the server saw %d attempts; want 1", got)
		}
	})
}

func TestAnUnsafeCallIsRepeatedWhenItNeverLeftTheClient(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(time.Second, s.Up)
		if err := s.call(t.Context(), createOrder); err != nil {
			t.Error(err)
		}
		if got := s.Count(createOrder); got != 1 {
			t.Errorf("the server saw %d attempts; want 1", got)
		}
	})
}

func TestACallThatItsCallerDeclaresSafeIsRepeated(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(createOrder, testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
		must.Do(t, s.call(t.Context(), createOrder, interceptor.Idempotent()))
	})
}

func TestTheServersWordWins(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		pushback []string
		attempts int
		waits    string
		reason   policy.Reason
	}{
		{[]string{"0"}, 4, "[0s 50ms 100ms]", policy.ReasonAttemptsExhausted},
		{[]string{"1000"}, 4, "[1.05s 50ms 100ms]", policy.ReasonAttemptsExhausted},
		{[]string{"-1"}, 1, "[]", policy.ReasonPushbackStop},
		{[]string{"soon"}, 1, "[]", policy.ReasonPushbackStop},
		{[]string{"7", "8"}, 1, "[]", policy.ReasonPushbackStop},
		{[]string{"300001"}, 1, "[]", policy.ReasonPushbackStop},
	} {
		t.Run(fmt.Sprint(row.pushback), func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(getOrder, testserver.Fail(codes.Unavailable).Pushback(row.pushback...).Times(1), testserver.Fail(codes.Unavailable))
				err := s.call(t.Context(), getOrder)
				e, _ := errors.AsType[*interceptor.Error](err)
				if e.Attempts != row.attempts || e.Reason != row.reason {
					t.Errorf("%d attempts, %s; want %d, %s", e.Attempts, e.Reason, row.attempts, row.reason)
				}
				if got := s.waits(); got != row.waits {
					t.Errorf("waits %s; want %s", got, row.waits)
				}
			})
		})
	}
}
