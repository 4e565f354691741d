// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/otelstagger"
	"github.com/stagger-go/stagger/testserver"
)

func TestMetricsOfBudgets(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		want(t, s.lines(t, "stagger.budget"))
		s.On(method, down())
		s.On(hedged, testserver.OK())
		s.call(t.Context(), method)
		s.call(t.Context(), hedged)
		full := fmt.Sprint(budget.Default().Size)
		want(t, s.lines(t, "stagger.budget"),
			"stagger.budget.balance{budget=default grpc.target=T kind=bucket service=} "+full,
			"stagger.budget.balance{budget=orders grpc.target= kind=throttle service=} 0",
			"stagger.budget.capacity{budget=default grpc.target=T kind=bucket service=} "+full,
			"stagger.budget.capacity{budget=orders grpc.target= kind=throttle service=} 3",
			"stagger.budget.granted{budget=default grpc.target=T kind=bucket service=} 0",
			"stagger.budget.granted{budget=orders grpc.target= kind=throttle service=} 2",
			"stagger.budget.refused{budget=default grpc.target=T kind=bucket service=} 0",
			"stagger.budget.refused{budget=orders grpc.target= kind=throttle service=} 1")
	})
}

// Balances with the same labels are counted together, and the emptiest is shown.
func TestMetricsOfBudgetsThatShareLabels(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		other := testserver.Start(t)
		other.On("*", testserver.OK())
		s.On(hedged, testserver.Fail(codes.Unavailable))
		full := scene{Server: other, conn: other.Dial(t, s.retrier.DialOptions()...)}
		for range 20 {
			full.call(t.Context(), hedged)
		}
		for range 20 {
			s.On(hedged, testserver.Fail(codes.NotFound)) // an answer: not everything fails
			s.call(t.Context(), hedged)
			s.On(hedged, testserver.Fail(codes.Unavailable))
			s.call(t.Context(), hedged)
		}
		refused, granted := uint64(0), uint64(0)
		var least interceptor.BudgetState
		for i, b := range s.retrier.State().Budgets {
			refused, granted = refused+b.Refused, granted+b.Granted
			if i == 0 || b.Balance < least.Balance {
				least = b
			}
		}
		const labels = "{budget=default grpc.target=any kind=bucket service=} "
		want(t, s.lines(t, "stagger.budget"),
			fmt.Sprint("stagger.budget.balance", labels, least.Balance), fmt.Sprint("stagger.budget.capacity", labels, least.Capacity),
			fmt.Sprint("stagger.budget.granted", labels, granted), fmt.Sprint("stagger.budget.refused", labels, refused))
		if len(s.retrier.State().Budgets) != 2 || refused == 0 {
			t.Errorf("%+v; want two balances, of which one has refused", s.retrier.State().Budgets)
		}
	}, otelstagger.Target(func(string) string { return "any" }))
}

// A Retrier that the program has dropped is not kept alive or read, closed or not.
func TestMetricsOfRetriersThatAreDropped(t *testing.T) {
	t.Parallel()
	const n = 200
	s := scene{reader: sdk.NewManualReader(), Server: testserver.Start(t)}
	provider := sdk.NewMeterProvider(sdk.WithReader(s.reader))
	var dropped []weak.Pointer[interceptor.Retrier]
	for i := range n {
		r := newRetrier(t, otelstagger.WithMetrics(provider, otelstagger.Attributes(attribute.Int("retrier", i))))
		if i%2 == 0 {
			r.Close()
		}
		dropped = append(dropped, weak.Make(r))
	}
	if _, err := interceptor.New(nil, otelstagger.WithMetrics(provider)); err == nil { // half made
		t.Error("nil is taken for a set")
	}
	kept := newRetrier(t, otelstagger.WithMetrics(provider))
	if got := strings.Count(s.lines(t, "stagger.client.waiting"), "\n"); got > 3*n {
		t.Fatalf("%d readings", got)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		runtime.GC()
		alive := len(slices.DeleteFunc(slices.Clone(dropped), func(p weak.Pointer[interceptor.Retrier]) bool { return p.Value() == nil }))
		lines := s.lines(t, "stagger.client.waiting")
		if alive == 0 && strings.Count(lines, "\n") == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d Retriers are alive, and what is read is\n%s", alive, n, lines)
		}
	}
	runtime.KeepAlive(kept)
}
