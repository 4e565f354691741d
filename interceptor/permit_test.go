// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

var noCredentials = insecure.NewCredentials()

// charged runs a test with hasty retries that a purse pays for.
func charged(t *testing.T, test func(t *testing.T, s scene, p *purse), options ...interceptor.Option) {
	t.Helper()
	p := &purse{Budget: budget.Unlimited, grants: 99}
	retry := hasty()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) { test(t, s, p) }, append(options, interceptor.WithBudget("", p))...)
}

func TestAPermitIsGivenBackOnceWhenItsAttemptIsNotSent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script []testserver.Step
		cancel time.Duration
	}{
		"cancelled in a backoff":                     {[]testserver.Step{down()}, 50 * ms},
		"cancelled in the backoff after a timeout":   {[]testserver.Step{testserver.Hang()}, 1050 * ms},
		"answered in the backoff after a timeout":    {[]testserver.Step{text("").Delay(1050 * ms)}, time.Hour},
		"failed for good in the one after a timeout": {[]testserver.Step{testserver.Fail(codes.NotFound).Delay(1050 * ms)}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			charged(t, func(t *testing.T, s scene, p *purse) {
				s.On(get, row.script...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(row.cancel, cancel)
				_, _ = s.call(ctx, get)
				time.Sleep(time.Minute) // virtual: nothing is left that could still happen
				if len(p.asked) != 1 || p.returned != 1 || p.refunded != 0 || p.started != 1 || p.ok+p.bad != 1 {
					t.Errorf("%d calls, %v; want one permit, returned once", p.started, p)
				}
			})
		})
	}
}

// An interceptor further in that waits may return the bare error of its context.
func TestAnAbandonedAttemptIsFollowedWhateverItsError(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  func(ctx context.Context) error
		want string
	}{
		"the context's own error": {func(ctx context.Context) error { return ctx.Err() }, "second <nil>"},
		"a status of it":          {func(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }, "second <nil>"},
		"an answer after all":     {func(context.Context) error { return status.Error(codes.NotFound, "no order 7") }, " rpc error: code = NotFound desc = no order 7"},
	} {
		t.Run(name, func(t *testing.T) {
			charged(t, func(t *testing.T, s scene, p *purse) {
				attempts := 0
				inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if attempts++; attempts == 1 {
						<-ctx.Done()
						return row.err(ctx)
					}
					return invoke(ctx, method, req, reply, cc, opts...)
				}
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
				s.On(get, text("second"))
				got, err := s.call(t.Context(), get)
				if got := fmt.Sprint(got, " ", err); got != row.want {
					t.Errorf("%s; want %s", got, row.want)
				}
				if extra := attempts - 1; len(p.asked)-p.returned != extra {
					t.Errorf("%d extra attempts, %v", extra, p)
				}
			})
		})
	}
}

func TestAPanicLeavesNothingBehind(t *testing.T) {
	charged(t, func(t *testing.T, s scene, p *purse) {
		var attempt context.Context
		explode := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			attempt = ctx
			panic("boom")
		}
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(explode))...)
		func() {
			defer func() { _ = recover() }()
			_, _ = s.call(t.Context(), get)
		}()
		time.Sleep(time.Minute) // virtual: long after the attempt's timeout
		if attempt.Err() == nil || len(p.asked) != 0 || p.started != 1 || p.bad != 1 {
			t.Errorf("the attempt's context: %v; %d calls, %v; want it done, and no permit asked for", attempt.Err(), p.started, p)
		}
	})
}

func TestACancelledBackoffCarriesTheServersErrorToo(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "the disk is full"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		_, err := s.call(ctx, get)
		servers := status.Error(codes.Unavailable, "the disk is full")
		if status.Code(err) != codes.Canceled || !errors.Is(err, servers) {
			t.Errorf("%v; want CANCELED, and the server's error behind it", err)
		}
	})
}

func TestACallerThatCancelsIsNotToldOfABudget(t *testing.T) {
	charged(t, func(t *testing.T, s scene, p *purse) {
		p.grants = 0
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		if _, err := s.call(ctx, get); reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%s; want cancelled", reasonOf(err))
		}
	})
}

func TestTheContextsOfACallEndWithIt(t *testing.T) {
	t.Parallel()
	retry := hasty()
	c := config(retry)
	c.Methods[0].Timeout = time.Hour
	unary := mustNew(t, mustSet(t, c), quiet).Unary()
	synctest.Test(t, func(t *testing.T) {
		var seen []context.Context
		_ = unary(t.Context(), get, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			if seen = append(seen, ctx); len(seen) < 3 {
				return status.Error(codes.Unavailable, "")
			}
			return nil
		})
		for i, ctx := range seen {
			if ctx.Err() == nil {
				t.Errorf("the context of attempt %d lives on", i+1)
			}
		}
	})
}
