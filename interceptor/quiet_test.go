// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// quietly runs a test with a client that nobody observes: its calls that succeed at once take the
// short way through the interceptor.
func quietly(t *testing.T, test func(t *testing.T, s scene, p *purse)) {
	t.Helper()
	t.Parallel()
	retry := plain()
	retry.Budget = ""
	synctest.Test(t, func(t *testing.T) {
		p := &purse{Budget: budget.Unlimited, grants: 9}
		s := scene{Server: testserver.Start(t), journal: new(journal), retrier: mustNew(t, mustSet(t, config(retry)), quiet, interceptor.WithBudget("", p))}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		test(t, s, p)
	})
}

func TestWithoutObserversABudgetIsToldOfEveryCall(t *testing.T) {
	quietly(t, func(t *testing.T, s scene, p *purse) {
		s.On(get, text(""), down(), text(""), down())
		for range 3 {
			_, _ = s.call(t.Context(), get)
		}
		if got := p.String(); p.started != 3 || got != "asked [failure failure failure failure], failed 5, returned 0, refunded 1, ok 2, bad 1" {
			t.Errorf("%d calls, %s", p.started, got)
		}
	})
}

func TestWithoutObserversOptionsAreServed(t *testing.T) {
	quietly(t, func(t *testing.T, s scene, _ *purse) {
		s.On(get, text("").Header(metadata.Pairs("from", "1")).Trailer(metadata.Pairs("end", "1")))
		var header, trailer metadata.MD
		var p peer.Peer
		finished := 0
		incoming := metadata.Pairs("grpc-previous-rpc-attempts", "3")
		ctx := metadata.NewOutgoingContext(metadata.NewIncomingContext(t.Context(), incoming), incoming.Copy())
		_, err := s.call(ctx, get, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p), grpc.OnFinish(func(error) { finished++ }))
		if err != nil || header["from"] == nil || trailer["end"] == nil || p.Addr == nil || finished != 1 {
			t.Errorf("%v, header %v, trailer %v, peer %v, OnFinish %d times", err, header["from"], trailer["end"], p.Addr, finished)
		}
		if got := s.Attempts()[0].Metadata["grpc-previous-rpc-attempts"]; len(got) > 0 {
			t.Errorf("the server was told of %v attempts before", got)
		}
	})
}

func TestAnObserverOfCallsAloneIsToldOfThemAndCostsNothing(t *testing.T) {
	var events []interceptor.CallEvent
	observer := interceptor.Observer{Call: func(_ context.Context, e interceptor.CallEvent) { events = append(events[:0], e) }}
	unary := mustNew(t, fiftyMethods(t), interceptor.WithObserver(observer)).Unary()
	ctx, opts := t.Context(), []grpc.CallOption{grpc.StaticMethod()}
	call := func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	call()
	if n := testing.AllocsPerRun(1000, call); n != 0 {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
	if e := events[0]; e.Attempts != 1 || e.Reason != policy.ReasonSucceeded || time.Since(e.Start) < e.Elapsed {
		t.Errorf("%+v", e)
	}
}

func TestASecondTargetCostsNothingEither(t *testing.T) {
	retrier := mustNew(t, fiftyMethods(t))
	unary := retrier.Unary()
	for _, target := range []string{"passthrough:///one", "passthrough:///two"} {
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(noCredentials))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		call := func() { _ = unary(t.Context(), "/acme.orders.v1.OrderService/Method25", nil, nil, conn, answered) }
		call()
		if n := testing.AllocsPerRun(1000, call); n != 0 {
			t.Errorf("%s: a call allocates %v times; want 0", target, n)
		}
	}
}

// A policy that was made for another set must not be taken for one of this Retrier's.
func TestAPolicyOfAnotherSetPaysFromTheBudgetThatItNames(t *testing.T) {
	quietly(t, func(t *testing.T, s scene, p *purse) {
		other := mustSet(t, config(plain())) // budget NONE
		s.On(get, down())
		_, _ = s.call(t.Context(), get, interceptor.WithPolicy(other.Lookup(get)))
		if p.started != 0 || s.Count(get) != 4 {
			t.Errorf("the budget was told of %d calls, the server of %d attempts; want 0 and 4", p.started, s.Count(get))
		}
		_, _ = s.call(t.Context(), get)
		if p.started != 1 {
			t.Errorf("the budget was told of %d calls of the real policy; want 1", p.started)
		}
	})
}
