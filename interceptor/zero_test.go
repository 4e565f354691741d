// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A Retrier that New has not made does nothing, or says so.
func TestZero(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*interceptor.Retrier{"zero": new(interceptor.Retrier), "nil": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.Start(t)
			server.On("*", testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
			for _, options := range [][]grpc.DialOption{
				r.DialOptions(),
				{grpc.WithUnaryInterceptor(r.Unary()), grpc.WithStreamInterceptor(r.Stream())},
				append(mustNew(t, mustParse(t, "maxWaiting: 3"), quiet).DialOptions(), grpc.WithChainUnaryInterceptor(r.Unary())),
			} {
				conn := server.Dial(t, options...)
				_ = exchange(t.Context(), conn, nil, get, interceptor.Idempotent(), interceptor.MaxAttempts(3))
				for _, desc := range callKinds {
					testkit.NoError(t, exchange(t.Context(), conn, desc, get, interceptor.Idempotent(), interceptor.MaxAttempts(3)))
				}
			}
			if n := server.Count(get); n != 3*(len(callKinds)+1) {
				t.Errorf("%d attempts; want one for each call", n)
			}
			answered := testserver.Start(t, testserver.ServerOptions(r.ServerOptions()...))
			testkit.NoError(t, exchange(t.Context(), answered.Dial(t), nil, get))

			runs := 0
			failed := errors.New("f has failed")
			err := r.Do(t.Context(), get, func(context.Context) error {
				runs++
				return failed
			})
			if err != failed || runs != 1 {
				t.Errorf("Do: %v after %d runs; want f's own error after one", err, runs)
			}

			for what, err := range map[string]error{
				"Reload":     r.Reload(mustParse(t, "maxWaiting: 3")),
				"Reload nil": r.Reload(nil),
				"SetMode":    r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}),
				"a service":  r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff, Service: "acme.orders.v1.OrderService"}),
			} {
				if err == nil || !strings.HasPrefix(err.Error(), "interceptor: ") {
					t.Errorf("%s: %v; want an error", what, err)
				}
			}
			if is := r.State(); is.Policies != nil || len(is.Budgets) > 0 || is.Waiting.All() != 0 {
				t.Errorf("%+v; want the zero state", is)
			}
			r.Close()
			r.Close()
		})
	}
}

// Options may be applied to a zero Retrier, as those that are made of several do in their tests.
func TestZero_Options(t *testing.T) {
	t.Parallel()
	r := new(interceptor.Retrier)
	for _, option := range []interceptor.Option{
		interceptor.WithObserver(interceptor.Observer{CallEnd: func(context.Context, interceptor.CallEnd) {}}),
		interceptor.WithBudget("a", func(string) budget.Budget { return budget.Unlimited }),
		interceptor.WithBreaker(func(string, string) interceptor.Gate { return nil }),
		interceptor.WithDefaultTimeout(1), interceptor.WithMaxReplayBytes(1), interceptor.WithDescriptors(new(protoregistry.Files)),
		interceptor.WithStatsHandler(new(seen)),
		interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict { return interceptor.VerdictByCode }),
	} {
		testkit.NoError(t, option(r))
	}
	r.AddObserver(interceptor.Observer{CallEnd: func(context.Context, interceptor.CallEnd) {}})()
	r.Close()
	if len(r.DialOptions()) > 0 || r.State().Policies != nil || r.Reload(mustParse(t, "maxWaiting: 3")) == nil {
		t.Error("a Retrier was made of options")
	}
}

// An option may use the Retrier that is being made.
func TestZero_BeingMade(t *testing.T) {
	t.Parallel()
	var call grpc.UnaryClientInterceptor
	r := mustNew(t, mustParse(t, "maxWaiting: 3"), quiet, func(r *interceptor.Retrier) error {
		call = r.Unary()
		_ = r.State()
		_ = r.DialOptions()
		r.Close()
		if r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff, Service: "un.Known"}) == nil {
			t.Error("nobody has the service")
		}
		return r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff})
	})
	if r.State().Switches[0].Mode != policy.ModeOff {
		t.Error("the mode is not that of the option")
	}
	server := testserver.Start(t)
	testkit.NoError(t, exchange(t.Context(), server.Dial(t, grpc.WithUnaryInterceptor(call)), nil, get))
}
