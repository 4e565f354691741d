// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/migration"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// reports counts as go-grpc-middleware's interceptors for logs and Prometheus do: they are reporters.
type reports struct{ calls int }

func (r *reports) ClientReporter(ctx context.Context, _ interceptors.CallMeta) (interceptors.Reporter, context.Context) {
	r.calls++
	return interceptors.NoopReporter{}, ctx
}

// The order of docs/go-grpc-middleware.md: reporters and the timeout before the Retrier see a call once, those after it see its attempts,
// and a selector around the Retrier leaves calls out.
func TestMiddleware_Order(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t)
		set, err := policy.Parse("retry.yaml", migration.Policies)
		if err != nil {
			t.Fatal(err)
		}
		retrier, err := interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}}))
		if err != nil {
			t.Fatal(err)
		}
		var before, after reports
		skip := false
		matcher := selector.MatchFunc(func(context.Context, interceptors.CallMeta) bool { return !skip })
		conn := server.Dial(t, grpc.WithDisableRetry(), grpc.WithChainUnaryInterceptor(
			timeout.UnaryClientInterceptor(2*time.Second),
			interceptors.UnaryClientInterceptor(&before),
			selector.UnaryClientInterceptor(retrier.Unary(), matcher),
			interceptors.UnaryClientInterceptor(&after),
		))
		call := func() error {
			return conn.Invoke(t.Context(), getOrder, new(emptypb.Empty), new(emptypb.Empty))
		}
		server.On(getOrder, testserver.Fail(codes.Unavailable, "restarting").Times(2), testserver.OK())
		if err := call(); err != nil || before.calls != 1 || after.calls != 3 {
			t.Errorf("%v, %d times before the Retrier and %d times after it; want 1 and 3", err, before.calls, after.calls)
		}
		skip = true
		server.On(getOrder, testserver.Fail(codes.Unavailable, "restarting").Times(2), testserver.OK())
		if err := call(); err == nil || after.calls != 4 {
			t.Errorf("%v after %d attempts; want the error of a call that is left out", err, after.calls-3)
		}
		server.On(getOrder, testserver.Hang())
		skip = false
		began := time.Now()
		if err := call(); err == nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v; want the timeout of the whole call", err, time.Since(began))
		}
	})
}
