// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/migration"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// Retries by other libraries around a Retrier cause a warning if they repeat a call with the same request. A loop that
// builds a new request for each try cannot be told from independent calls.
func TestOuterRetries(t *testing.T) {
	request := new(emptypb.Empty)
	once := func(ctx context.Context, conn *grpc.ClientConn) error {
		return conn.Invoke(ctx, getOrder, request, new(emptypb.Empty))
	}
	for name, row := range map[string]struct {
		client migration.Client
		warned bool
	}{
		"go-grpc-middleware": {migration.Middleware(), true},
		"failsafe-go":        {migration.Failsafe(), true},
		"cenkalti/backoff": {migration.Client{Dial: grpc.NewClient, Get: func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, once(ctx, conn) }, backoff.WithMaxTries(4))
			return err
		}}, true},
		"gax-go": {migration.Client{Dial: grpc.NewClient, Get: func(ctx context.Context, conn *grpc.ClientConn) error {
			return gax.Invoke(ctx, func(ctx context.Context, _ gax.CallSettings) error { return once(ctx, conn) }, gax.WithRetry(func() gax.Retryer {
				return gax.OnCodes([]codes.Code{codes.Unavailable}, gax.Backoff{Initial: 100 * time.Millisecond, Max: time.Second, Multiplier: 2})
			}))
		}}, true},
		"gax-go, with another request each time": {migration.Gax(), false},
		"a loop, with another request each time": {migration.Loop(), false},
		"none":                                   {migration.Client{Dial: grpc.NewClient, Get: once}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(getOrder, testserver.Fail(codes.Unavailable, "restarting"))
				set, err := policy.Parse("retry.yaml", migration.Policies)
				if err != nil {
					t.Fatal(err)
				}
				var warnings []string
				retrier, err := interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
					if d.Field == "outer retry" {
						warnings = append(warnings, d.String())
					}
				}}))
				if err != nil {
					t.Fatal(err)
				}
				conn, err := row.client.Dial(server.Target(), append(server.DialOptions(), retrier.DialOptions()...)...)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if err := row.client.Get(ctx, conn); err == nil {
					t.Error("no error")
				}
				if got := fmt.Sprint(warnings); (len(warnings) == 1) != row.warned || row.warned && !strings.Contains(got, getOrder) {
					t.Errorf("warnings %s; want one: %t", got, row.warned)
				}
			})
		})
	}
}
