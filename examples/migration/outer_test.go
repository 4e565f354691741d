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

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/migration"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// Retries by go-grpc-middleware around a Retrier cause a warning. A loop cannot be told from independent calls.
func TestOuterRetries(t *testing.T) {
	once := func(ctx context.Context, conn *grpc.ClientConn) error {
		return conn.Invoke(ctx, getOrder, new(emptypb.Empty), new(emptypb.Empty))
	}
	for name, row := range map[string]struct {
		client migration.Client
		warned bool
	}{
		"go-grpc-middleware": {migration.Middleware(), true},
		"a loop":             {migration.Loop(), false},
		"none":               {migration.Client{Dial: grpc.NewClient, Get: once}, false},
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
