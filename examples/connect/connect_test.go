// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	ours "github.com/stagger-go/stagger/examples/connect"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// inMemory calls a connect handler without a network.
type inMemory struct{ http.Handler }

func (h inMemory) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

type handler func(ctx context.Context) error

func (h handler) handle(ctx context.Context, _ *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
	return connect.NewResponse(&emptypb.Empty{}), h(ctx)
}

// The retry waits as long as the server's Retry-After header says. A call whose context ends keeps its code and isn't retried, also if an
// interceptor of the client returns the context's error.
func TestInterceptor(t *testing.T) {
	busy := func(context.Context) error {
		err := connect.NewError(connect.CodeUnavailable, errors.New("busy"))
		err.Meta().Set("Retry-After", "1")
		return err
	}
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	waits := connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) { return nil, hang(ctx) }
	})
	for name, row := range map[string]struct {
		first  handler
		cancel time.Duration // of the call, if not 0
		inner  []connect.Interceptor
		runs   int
		took   time.Duration
		reason policy.Reason
		code   codes.Code
	}{
		"Retry-After":               {first: busy, runs: 2, took: 1500 * time.Millisecond, reason: policy.ReasonSucceeded}, // the jitter is half a second
		"the deadline":              {first: hang, runs: 1, took: 5 * time.Second, reason: policy.ReasonDeadlineExceeded, code: codes.DeadlineExceeded},
		"the caller":                {first: hang, cancel: time.Second, runs: 1, took: time.Second, reason: policy.ReasonCancelled, code: codes.Canceled},
		"an interceptor that waits": {inner: []connect.Interceptor{waits}, took: 5 * time.Second, reason: policy.ReasonDeadlineExceeded, code: codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				server := connect.NewUnaryHandler(getOrder, handler(func(ctx context.Context) error {
					runs++
					if runs == 1 {
						return row.first(ctx)
					}
					return nil
				}).handle)
				var end interceptor.CallEnd
				retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}},
					interceptor.WithRandom(func() float64 { return 0.5 }),
					interceptor.WithObserver(interceptor.Observer{CallEnd: func(_ context.Context, e interceptor.CallEnd) { end = e }}))
				if err != nil {
					t.Fatal(err)
				}
				client := connect.NewClient[emptypb.Empty, emptypb.Empty](inMemory{server}, "http://orders"+getOrder,
					connect.WithInterceptors(append([]connect.Interceptor{ours.Interceptor(retrier, "orders")}, row.inner...)...))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if row.cancel > 0 {
					time.AfterFunc(row.cancel, cancel)
				}
				began := time.Now()
				_, err = client.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
				took := time.Since(began)
				if end.Reason != row.reason || status.Code(err) != row.code || runs != row.runs || took != row.took {
					t.Errorf("%v (%s) after %v and %d runs; want %v, %s, %v, %d", err, end.Reason, took, runs, row.code, row.reason, row.took, row.runs)
				}
			})
		})
	}
}
