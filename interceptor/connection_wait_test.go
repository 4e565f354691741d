// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A server is down when a call begins, and back after some time. gRPC connects anew a second later, more or less.
func TestConnectionWait(t *testing.T) {
	const never = time.Hour
	hedging := policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 2, Delay: time.Minute, NonFatal: policy.Codes(codes.Unavailable), Budget: policy.NoBudget}}
	for _, row := range []struct {
		name     string
		change   func(*policy.Spec)
		method   string
		back     time.Duration
		deadline time.Duration // 0: a minute; -1: none
		opts     []grpc.CallOption
		attempts int
		reason   policy.Reason // "": the call succeeds
		atLeast  time.Duration // that the call takes
		atMost   time.Duration
	}{
		{name: "until the server is back", back: 500 * ms, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second},
		{name: "without a deadline, too", back: 500 * ms, deadline: -1, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second},
		{name: "a method that is not safe, since nothing was sent", method: create, back: 500 * ms, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second},
		{name: "no longer than maxConnectionWait", back: never, attempts: 1, reason: policy.ReasonNotConnected, atLeast: 3 * time.Second, atMost: 3 * time.Second},
		{
			name: "a maxConnectionWait of its own", back: never, attempts: 1, reason: policy.ReasonNotConnected, atLeast: time.Second, atMost: time.Second,
			change: func(s *policy.Spec) { s.Retry.MaxConnectionWait = time.Second },
		},
		{name: "not past the deadline", back: never, deadline: time.Second, attempts: 1, reason: policy.ReasonNotConnected, atLeast: 999 * ms, atMost: 999 * ms},
		{
			name: "not if waitForReadyOnRetry is false", back: 500 * ms, attempts: 4, reason: policy.ReasonAttemptsExhausted, atMost: 70 * ms,
			change: func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(false) },
		},
		{
			name: "not if waitForReady is false", back: 500 * ms, attempts: 4, reason: policy.ReasonAttemptsExhausted, atMost: 70 * ms,
			change: func(s *policy.Spec) { s.WaitForReady = new(false) },
		},
		{
			name: "not if the call says otherwise", back: 500 * ms, attempts: 4, reason: policy.ReasonAttemptsExhausted, atMost: 70 * ms,
			opts: []grpc.CallOption{grpc.WaitForReady(false)},
		},
		{
			name: "in gRPC if waitForReadyOnRetry is true", back: 5 * time.Second, attempts: 2, atLeast: 5 * time.Second, atMost: 10 * time.Second,
			change: func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(true) },
		},
		{
			name: "in gRPC only with a deadline", back: 5 * time.Second, deadline: -1, attempts: 4, reason: policy.ReasonAttemptsExhausted, atMost: 70 * ms,
			change: func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(true) },
		},
		{
			name: "in gRPC only if the call agrees", back: 500 * ms, attempts: 4, reason: policy.ReasonAttemptsExhausted, atMost: 70 * ms,
			change: func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(true) },
			opts:   []grpc.CallOption{grpc.WaitForReady(false)},
		},
		{
			name: "before the next attempt of a hedging policy", back: 500 * ms, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second,
			change: func(s *policy.Spec) { *s = hedging },
		},
	} {
		for _, kind := range []string{"unary", "stream"} {
			t.Run(kind+"/"+row.name, func(t *testing.T) {
				retry := plain()
				retry.Backoff.Initial, retry.Backoff.Multiplier = 10*ms, 1
				c := config(retry)
				if row.change != nil {
					for i := range c.Methods {
						row.change(&c.Methods[i].Spec)
					}
				}
				method := row.method
				if method == "" {
					method = get
				}
				play(t, c, func(t *testing.T, s scene) {
					s.Down()
					if row.back != never {
						time.AfterFunc(row.back, s.Up)
					}
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if row.deadline >= 0 {
						ctx, cancel = context.WithTimeout(ctx, cmp.Or(row.deadline, time.Minute))
					}
					defer cancel()
					began := time.Now()
					err := s.once(ctx, kind, method, row.opts...)
					took := time.Since(began)
					synctest.Wait()
					if reasonOf(err) != row.reason || len(s.attempts) != row.attempts {
						t.Errorf("%v (%s) after %d attempts; want %q after %d", err, reasonOf(err), len(s.attempts), row.reason, row.attempts)
					}
					if row.reason != "" && status.Code(err) != codes.Unavailable {
						t.Errorf("%v; want the error at hand", err)
					}
					if took < row.atLeast || took > row.atMost {
						t.Errorf("took %v; want %v to %v", took, row.atLeast, row.atMost)
					}
					if n := s.retrier.Waiting(); n != 0 {
						t.Errorf("%d calls still wait", n)
					}
				})
			})
		}
	}
}

// once makes one call of a kind, and returns its error.
func (s scene) once(ctx context.Context, kind, method string, opts ...grpc.CallOption) error {
	if kind == "unary" {
		_, err := s.call(ctx, method, opts...)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, opts...)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String("order 7")); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(new(wrapperspb.StringValue))
}

// A target that is dead leaves half of the wait slots to the others.
func TestConnectionWaitOfOneTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		retry := plain()
		retry.Backoff.Initial, retry.Backoff.Multiplier = 10*ms, 1
		r := mustNew(t, mustSet(t, config(retry)), quiet, interceptor.WithMaxWaiting(10))
		dead := testserver.Start(t)
		dead.Down()
		conn := dead.Dial(t, r.DialOptions()...)
		var calls sync.WaitGroup
		reasons := map[policy.Reason]int{}
		var mu sync.Mutex
		for range 10 {
			calls.Go(func() {
				err := conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue))
				mu.Lock()
				defer mu.Unlock()
				reasons[reasonOf(err)]++
			})
		}
		time.Sleep(time.Second)
		if n := r.Waiting(); n != 5 {
			t.Errorf("%d calls wait; want half of 10", n)
		}
		calls.Wait()
		if reasons[policy.ReasonTooManyWaiting] != 5 || reasons[policy.ReasonNotConnected] != 5 {
			t.Errorf("%v; want 5 calls to wait in vain, and 5 not to wait", reasons)
		}
	})
}
