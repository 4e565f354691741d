// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// Law 8: one layer retries. Each client of A → B → C → D makes up to 3 attempts, and D is out.
func TestAnOutageAtTheEndOfAChainCostsTheAttemptsOfOneLayer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		chain
		want int // requests at D for one call of the user
	}{
		{"no service has the interceptor", chain{}, 27},
		{"all services that call others have it", chain{guards: "BC"}, 3},
		{"only C has it: B leaves its retries, and A does not know", chain{guards: "C"}, 9},
		{"only B has it: B and C retry, and A does not", chain{guards: "B"}, 9},
		{"A is plain gRPC with a retryPolicy", chain{guards: "BC", grpcs: "A"}, 3},
		{"A is plain gRPC with a retryPolicy, none has it", chain{grpcs: "A"}, 27},
		{"A is plain gRPC with a retryPolicy, only C has it", chain{guards: "C", grpcs: "A"}, 9},
		{"B is plain gRPC: it obeys C, and does not tell A", chain{guards: "BC", grpcs: "B"}, 9},
		{"C is plain gRPC: it does not tell B, which tells A", chain{guards: "BC", grpcs: "C"}, 9},
	} {
		row.retry = three(policy.ChainAllow)
		for _, unary := range []bool{true, false} {
			row.unary = unary
			t.Run(fmt.Sprintf("%s, unary %v", row.name, unary), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := row.start(t)
					s.d.On(get, down())
					if err := s.call(t); status.Code(err) != codes.Unavailable {
						t.Errorf("error %v; want that of D", err)
					}
					if got := s.d.Count(get); got != row.want {
						t.Errorf("%d requests at D; want %d", got, row.want)
					}
				})
			})
		}
	}
}

// A failure of B's or C's own is none of a call that was given up: the layer above retries it.
func TestAServiceThatFailsByItselfIsRetriedByTheLayerAbove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := chain{guards: "BC", retry: three(policy.ChainAllow), fails: 0.3}.start(t)
		for range 20 {
			if err := s.call(t); err != nil {
				t.Fatal(err)
			}
		}
		if own := s.b.Count(get) + s.c.Count(get) - 40; own < 10 {
			t.Errorf("%d failures of B's and C's own; the test wants more", own)
		}
	})
}

// What a service says to the caller above when it fails with UNAVAILABLE, after different calls of its own.
func TestAServiceSpeaksOfRetriesOnlyIfItHasGivenThemUp(t *testing.T) {
	t.Parallel()
	fails := status.Error(codes.Unavailable, "as the handler says")
	pass := func(err error) error { return err }
	var (
		gaveUp  = []string{"-1"}
		nothing []string
	)
	for _, row := range []struct {
		name   string
		script []testserver.Step
		method string
		opts   []grpc.CallOption
		answer func(error) error // the handler's
		want   []string
	}{
		{"its attempts are exhausted", []testserver.Step{down()}, get, nil, pass, gaveUp},
		{"so they are, and it fails in its own words", []testserver.Step{down()}, get, nil, func(error) error { return fails }, gaveUp},
		{"the server below forbids it", []testserver.Step{down().Pushback("-1")}, get, nil, pass, gaveUp},
		{"it gave up, and does without", []testserver.Step{down()}, get, nil, func(error) error { return nil }, nothing},
		{"its call failed with a code that nobody retries", []testserver.Step{testserver.Fail(codes.NotFound)}, get, nil, pass, nothing},
		{"its call succeeded at once", []testserver.Step{text("a")}, get, nil, func(error) error { return fails }, nothing},
		{"its call succeeded after retries", []testserver.Step{down().Times(2), text("a")}, get, nil, func(error) error { return fails }, nothing},
		{"its call was not safe to repeat", []testserver.Step{down()}, create, nil, pass, nothing},
		{"its call switched retries off", []testserver.Step{down()}, get, []grpc.CallOption{interceptor.Disable()}, pass, nothing},
	} {
		for _, unary := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, unary %v", row.name, unary), func(t *testing.T) {
				play(t, config(three(policy.ChainAllow)), func(t *testing.T, s scene) {
					s.Default(row.script...)
					got, err := s.trailerAbove(t, unary, func(ctx context.Context) error {
						_, err := s.call(ctx, row.method, row.opts...)
						return row.answer(err)
					})
					if fmt.Sprint(got) != fmt.Sprint(row.want) {
						t.Errorf("trailer %v with %v; want %v", got, err, row.want)
					}
				})
			})
		}
	}
}

// trailerAbove has a service with the interceptor handle a call, and returns the pushback in its answer.
func (s scene) trailerAbove(t *testing.T, unary bool, handle func(ctx context.Context) error) ([]string, error) {
	t.Helper()
	options := []testserver.Option{testserver.Name("service of " + t.Name()), testserver.ServerOptions(
		grpc.ChainUnaryInterceptor(s.retrier.UnaryServer()), grpc.ChainStreamInterceptor(s.retrier.StreamServer()))}
	if unary {
		options = append(options, testserver.Register(unaryOrders(handle)))
	}
	srv := testserver.Start(t, options...)
	srv.On(get, testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		return answer(handle(ctx))
	}))
	var trailer metadata.MD
	err := srv.Dial(t).Invoke(t.Context(), get, new(wrapperspb.StringValue), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
	return trailer.Get(policy.PushbackTrailer), err
}

func TestAHopThatMayNotRetrySaysNothingUpstream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lower := testserver.Start(t, testserver.Name("lower"))
		lower.Default(down())
		once := mustNew(t, mustSet(t, config(plain())), quiet, interceptor.WithMaxAttempts(1))
		conn := lower.Dial(t, once.DialOptions()...)
		upper := testserver.Start(t, testserver.Name("upper"), testserver.ServerOptions(grpc.ChainStreamInterceptor(once.StreamServer())))
		upper.Default(testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
			err := conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{})
			return testserver.FailStatus(status.Convert(err))
		}))
		var trailer metadata.MD
		err := upper.Dial(t).Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, grpc.Trailer(&trailer))
		if status.Code(err) != codes.Unavailable || len(trailer.Get(policy.PushbackTrailer)) != 0 {
			t.Errorf("%v, trailer %v; want no word of retries", err, trailer)
		}
	})
}
