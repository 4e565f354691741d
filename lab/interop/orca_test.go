// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/orca"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// With the reports of gRPC's own servers (ORCA), admission distinguishes a queue from a slow service.
func TestAdmissionHearsORCA(t *testing.T) {
	t.Parallel()
	const method = "/interop.v1.OrderService/GetOrder"
	for name, row := range map[string]struct {
		utilization float64 // reported by the server; 0: it
		refused     bool
	}{
		"nothing":  {0, true},
		"not busy": {0.3, false},
		"busy":     {1.2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set := must.Get(policy.Parse("", []byte(`methodConfig: [{name: [{}], admission: REFUSE, timeout: 1s}]`)))(t)
				retrier := must.Get(interceptor.New(set))(t)
				server := testserver.Start(t, testserver.ServerOptions(orca.CallMetricsServerOption(nil)))
				answer := func(after time.Duration) testserver.Step {
					return testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
						if row.utilization > 0 {
							orca.CallMetricsRecorderFromContext(ctx).SetApplicationUtilization(row.utilization)
						}
						return testserver.OK().Delay(after)
					})
				}
				conn := server.Dial(t, retrier.DialOptions()...)
				call := func() error {
					return conn.Invoke(t.Context(), method, wrapperspb.String(""), new(wrapperspb.StringValue))
				}
				server.On(method, answer(0).Times(2), answer(700*time.Millisecond))
				for range 6 {
					must.Do(t, call())
				}
				server.On(method, testserver.Fail(codes.ResourceExhausted, "full")) // from here on, slow answers alone refuse calls
				_ = call()
				server.On(method, testserver.Hang())
				var running sync.WaitGroup
				for range 2 { // as many as can be
					running.Go(func() { _ = call() })
				}
				synctest.Wait()
				server.On(method, testserver.OK())
				e, _ := errors.AsType[*interceptor.Error](call())
				if refused := e != nil && e.Reason == policy.ReasonOverloaded; refused != row.refused {
					t.Errorf("%+v; refused should be %v", e, row.refused)
				}
				running.Wait()
			})
		})
	}
}
