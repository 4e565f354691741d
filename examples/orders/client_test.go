// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package orders_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/repeat"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// TestClient shows how to test your own client: against a server that fails on demand, in virtual time.
func TestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retrier, err := interceptor.Load("retry.yaml")
		if err != nil {
			t.Fatal(err)
		}
		defer retrier.Close()
		server := testserver.Start(t)
		conn := server.Dial(t, retrier.DialOptions()...)

		server.On(orders.GetOrder, testserver.Fail(codes.Unavailable).Times(2), testserver.OK())
		if err := conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			t.Error("a read survives two failures:", err)
		}

		server.Reset()
		server.On(orders.CreateOrder, testserver.Fail(codes.Unavailable))
		err = conn.Invoke(t.Context(), orders.CreateOrder, &emptypb.Empty{}, &emptypb.Empty{})
		if n := server.Count(orders.CreateOrder); status.Code(err) != codes.Unavailable || n != 1 {
			t.Errorf("an order is sent once, whatever happens: sent %d times, %v", n, err)
		}
		if e, ok := errors.AsType[*interceptor.Error](err); !ok || e.Reason != policy.ReasonNotIdempotent {
			t.Error("and the error says why:", err)
		}
	})
}

// TestClient_Delays checks the waits to the nanosecond: without jitter, they are exact.
func TestClient_Delays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 60s, backoffMultiplier: 2, jitter: NONE, retryableStatusCodes: [UNAVAILABLE]}
`))
		if err != nil {
			t.Fatal(err)
		}
		retrier, err := interceptor.New(set)
		if err != nil {
			t.Fatal(err)
		}
		defer retrier.Close()
		server := testserver.Start(t)
		conn := server.Dial(t, retrier.DialOptions()...)
		server.On(orders.GetOrder, testserver.Fail(codes.Unavailable).Times(2), testserver.OK())

		began := time.Now()
		err = conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{})
		if took := time.Since(began); err != nil || took != 3*time.Second {
			t.Errorf("waits of 1 s and 2 s: took %v, %v", took, err)
		}
	})
}

// TestClient_Hedge shows that a hedge needs to know what is usual: eight responses of the method.
func TestClient_Hedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s}
`))
		if err != nil {
			t.Fatal(err)
		}
		retrier, err := interceptor.New(set)
		if err != nil {
			t.Fatal(err)
		}
		defer retrier.Close()
		server := testserver.Start(t)
		conn := server.Dial(t, retrier.DialOptions()...)

		server.On(orders.GetOrder, testserver.OK().Times(5), testserver.Hang(), testserver.OK())
		for range 5 { // before that, no hedge is sent
			if err := conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		err = conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{})
		if took := time.Since(began); err != nil || took != 100*time.Millisecond {
			t.Errorf("the hedge wins: took %v, %v", took, err)
		}
	})
}

// TestClient_Repeat calls methods that the policy declares idempotent twice, and finds one that is not.
func TestClient_Repeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		retrier, err := interceptor.Load("retry.yaml", repeat.ForTests(nil), interceptor.WithObserver(interceptor.Observer{
			Diagnostic: func(d policy.Diagnostic) {
				if d.Field == "repeat" {
					reports = append(reports, d.Value+" "+d.Message) // or t.Error
				}
			},
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer retrier.Close()
		server := testserver.Start(t)
		conn := server.Dial(t, retrier.DialOptions()...)

		views := testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			return testserver.OK(wrapperspb.Int64(int64(a.Number))) // a counter
		})
		server.On(orders.GetOrder, views)
		server.On(orders.CreateOrder, views)
		for _, method := range []string{orders.GetOrder, orders.CreateOrder} {
			if err := conn.Invoke(t.Context(), method, &emptypb.Empty{}, &wrapperspb.Int64Value{}); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait() // for the second call
		want := []string{orders.GetOrder + " is declared idempotent, but the second of two equal calls has another reply: value"}
		if !slices.Equal(reports, want) || server.Count(orders.CreateOrder) != 1 {
			t.Errorf("reported %q; want %q, and one call of a method that nothing declares", reports, want)
		}
	})
}
