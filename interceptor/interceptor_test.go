// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestClose(t *testing.T) {
	minute := func(change func(*spec.Retry)) spec.Config {
		again := plain()
		again.Backoff, again.Budget = backoff.Config{Initial: time.Minute, Max: time.Minute, Multiplier: 1, Jitter: "NONE"}, "orders"
		if change != nil {
			change(&again)
		}
		c := config(again)
		c.Budgets = budgeted(bucketOf(50)).Budgets
		return c
	}
	t.Run("calls that wait", func(t *testing.T) {
		play(t, minute(nil), func(t *testing.T, s scene) {
			s.On(get, testserver.Fail(codes.Unavailable, "restarting"))
			before, start := inUse(s.retrier), time.Now()
			var calls sync.WaitGroup
			for _, desc := range callKinds {
				calls.Go(func() {
					err := exchange(t.Context(), s.conn, desc, get)
					if status.Code(err) != codes.Unavailable || status.Convert(err).Message() != "restarting" || reasonOf(err) != policy.ReasonClosed {
						t.Errorf("%v, %s; want the server's error, closed", err, reasonOf(err))
					}
				})
			}
			time.Sleep(time.Second)
			s.retrier.Close()
			s.retrier.Close()
			calls.Wait()
			if took := time.Since(start); took != time.Second || s.Count(get) != 4 || s.retrier.State().Waiting.All() != 0 {
				t.Errorf("ended after %v, %d attempts, %d wait", took, s.Count(get), s.retrier.State().Waiting.All())
			}
			if after := inUse(s.retrier); len(before) != 0 || len(after) != 1 || after[0].Balance < after[0].Capacity {
				t.Errorf("budgets %+v", after)
			}
		})
	})
	t.Run("later calls", func(t *testing.T) {
		play(t, minute(nil), func(t *testing.T, s scene) {
			s.retrier.Close()
			for _, row := range []struct {
				step testserver.Step
				code codes.Code
				want policy.Reason
			}{
				{text("1"), codes.OK, ""},
				{down(), codes.Unavailable, policy.ReasonClosed},
				{testserver.Fail(codes.NotFound), codes.NotFound, policy.ReasonNonRetryable},
			} {
				s.On(get, row.step)
				if _, err := s.call(t.Context(), get); status.Code(err) != row.code || reasonOf(err) != row.want {
					t.Errorf("%v, %s; want %s, %s", err, reasonOf(err), row.code, row.want)
				}
			}
			if s.Count(get) != 3 {
				t.Errorf("%d attempts; want 3", s.Count(get))
			}
		})
	})
	t.Run("an attempt that runs", func(t *testing.T) {
		play(t, hedged(), func(t *testing.T, s scene) {
			s.On(get, text("slow").Delay(time.Minute))
			time.AfterFunc(150*ms, s.retrier.Close)
			start := time.Now()
			got, err := s.call(t.Context(), get)
			if got != "slow" || err != nil || time.Since(start) != time.Minute || s.Count(get) != 2 {
				t.Errorf("%q, %v after %v, %d attempts; want the answer of the first of 2", got, err, time.Since(start), s.Count(get))
			}
		})
	})
	for _, kind := range []string{"unary", "stream"} {
		t.Run("calls that wait for a connection, "+kind, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.Down()
				time.AfterFunc(time.Second, s.retrier.Close)
				start := time.Now()
				err := s.once(t.Context(), kind, create)
				if status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonClosed || time.Since(start) != time.Second {
					t.Errorf("%v, %s after %v; want UNAVAILABLE, closed after 1s", err, reasonOf(err), time.Since(start))
				}
			})
		})
	}
	t.Run("a stream that runs", func(t *testing.T) {
		play(t, config(plain()), func(t *testing.T, s scene) {
			s.On(get, faults.Play(faults.Receive(1), say("1"), faults.Pause(time.Minute), say("2")).Then(down()))
			time.AfterFunc(time.Second, s.retrier.Close)
			stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
			send(t, stream, "from the start")
			got, err := receive(stream)
			if fmt.Sprint(got) != "[1 2]" || reasonOf(err) != policy.ReasonClosed || s.Count(get) != 1 {
				t.Errorf("%v, %s after %d attempts; want both messages of the first, and no resumption", got, reasonOf(err), s.Count(get))
			}
		})
	})
	t.Run("without a connection", func(t *testing.T) {
		play(t, minute(nil), func(t *testing.T, s scene) { // of tests that call the interceptor directly
			time.AfterFunc(time.Second, s.retrier.Close)
			start := time.Now()
			err := s.retrier.Unary()(t.Context(), get, nil, &emptypb.Empty{}, nil,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					return status.Error(codes.Unavailable, "down")
				})
			if reasonOf(err) != policy.ReasonClosed || time.Since(start) != time.Second {
				t.Errorf("%v, %s after %v; want closed after 1s", err, reasonOf(err), time.Since(start))
			}
		})
	})
}

// A Retrier may live longer than a bubble of synctest.
func TestClose_TwoBubbles(t *testing.T) {
	t.Parallel()
	retrier := mustNew(t, mustSet(t, config(plain())), quiet)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := scene{Server: testserver.Start(t)}
			s.conn = s.Dial(t, retrier.DialOptions()...)
			s.On(get, down(), text("2"))
			if _, err := s.call(t.Context(), get); err != nil {
				t.Error(err)
			}
		})
	}
	retrier.Close()
}

// TestDialOptions_Order has the claim of docs/observability.md: who stands before the Retrier sees calls, who stands after it attempts.
func TestDialOptions_Order(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var before, after int
		count := func(n *int) []grpc.DialOption {
			return []grpc.DialOption{
				grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					*n++
					return invoke(ctx, method, req, reply, cc, opts...)
				}),
				grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					*n++
					return open(ctx, desc, cc, method, opts...)
				}),
			}
		}
		conn := s.Dial(t, slices.Concat(count(&before), s.retrier.DialOptions(), count(&after))...)
		for kind, desc := range callKinds {
			before, after = 0, 0
			s.On("*", down().Times(2), text("third"))
			if err := exchange(t.Context(), conn, desc, get); err != nil || before != 1 || after != 3 {
				t.Errorf("%s: %v, seen %d times before and %d times after; want 1 and 3", kind, err, before, after)
			}
		}
	})
}
