// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A call to a server that is down ends when and as it is explained.
func TestExplainDown(t *testing.T) {
	t.Parallel()
	retry := func(change func(*policy.Spec)) policy.Spec {
		s := policy.Spec{Retry: new(policy.DefaultRetry())}
		s.Retry.Backoff.Jitter, s.Retry.Budget = policy.JitterNone, policy.NoBudget
		change(&s)
		return s
	}
	for name, row := range map[string]struct {
		spec     policy.Spec
		deadline time.Duration
		says     string
	}{
		"by default":               {retry(func(*policy.Spec) {}), 0, "up to 3s, and have no deadline; not at all when the outage is older than 10s"},
		"the entry's timeout":      {retry(func(s *policy.Spec) { s.Timeout = 2 * time.Second }), 0, "up to 1.999s of the 2s that they have"},
		"the caller's deadline":    {retry(func(*policy.Spec) {}), time.Second, "up to 999ms of the 1s that they have"},
		"a wait of its own":        {retry(func(s *policy.Spec) { s.Retry.MaxConnectionWait = 300 * time.Millisecond }), 0, "up to 300ms, and have no deadline; not at all when the outage is older than 1s"},
		"no wait":                  {retry(func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(false) }), 0, "calls do not wait for a connection"},
		"retries wait in gRPC":     {retry(func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(true) }), time.Second, "calls wait in gRPC, until their deadline after 1s"},
		"in gRPC from the start":   {retry(func(s *policy.Spec) { s.WaitForReady = new(true) }), time.Second, "calls wait in gRPC, until their deadline after 1s"},
		"one attempt by the entry": {policy.Spec{}, 0, "calls do not wait for a connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
				Names: []policy.Name{{Service: "acme.orders.v1.OrderService", Method: "GetOrder"}}, Spec: row.spec,
			}}})
			if err != nil {
				t.Fatal(err)
			}
			a := explain.Explain(decision.Compile(set), cli.API{}.Level, explain.Question{Method: method, Code: codes.Unavailable, Down: true, Deadline: row.deadline, MaxAttempts: 5}, explain.Chances{0})
			said := ""
			for _, f := range a.Facts() {
				if f.Name == "down" {
					said = f.Value
				}
			}
			if !strings.Contains(said, row.says) {
				t.Errorf("%q; want %q", said, row.says)
			}
			if wait := row.spec.WaitForReady; wait != nil { // a Retrier has gRPC's own service config say that
				return
			}
			synctest.Test(t, func(t *testing.T) {
				srv := testserver.Start(t)
				retrier, err := interceptor.New(set, interceptor.WithRandom(func() float64 { return 0 }), interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}}))
				if err != nil {
					t.Fatal(err)
				}
				conn := srv.Dial(t, retrier.DialOptions()...)
				srv.Down()
				conn.Connect()
				synctest.Wait()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if row.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, row.deadline)
				}
				defer cancel()
				began := time.Now()
				failed := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
				e, _ := errors.AsType[*interceptor.Error](failed)
				if took := time.Since(began); e == nil || took != a.At || e.Reason != a.End.Reason || e.Attempts != a.End.Attempts {
					t.Errorf("%+v after %v; explained was: %s", failed, took, a.Outcome())
				}
			})
		})
	}
}
