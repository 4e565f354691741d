// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/migration"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// go-grpc-middleware's timeout after the Retrier ends an attempt that hangs, and no retry follows unless the policy lists DEADLINE_EXCEEDED.
// docs/go-grpc-middleware.md says so. perAttemptTimeout is the remedy.
func TestTimeoutAfterRetrier(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		listed   string
		more     string // of the policy
		timeout  time.Duration
		code     codes.Code
		requests int
	}{
		"their timeout":       {"UNAVAILABLE", "", 100 * time.Millisecond, codes.DeadlineExceeded, 1},
		"the code is listed":  {"UNAVAILABLE, DEADLINE_EXCEEDED", "", 100 * time.Millisecond, codes.OK, 2},
		"perAttemptTimeout":   {"UNAVAILABLE", "\n      perAttemptTimeout: 0.1s\n      onAttemptTimeout: RETRY", time.Hour, codes.OK, 2},
		"a timeout too short": {"UNAVAILABLE", "\n      perAttemptTimeout: 0.2s\n      onAttemptTimeout: RETRY", 100 * time.Millisecond, codes.DeadlineExceeded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(getOrder, testserver.Hang().Times(1), testserver.OK())
				file := strings.ReplaceAll(string(migration.Policies), "[UNAVAILABLE]", "["+row.listed+"]"+row.more)
				set, err := policy.Parse("retry.yaml", []byte(file))
				if err != nil {
					t.Fatal(err)
				}
				retrier, err := interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}}))
				if err != nil {
					t.Fatal(err)
				}
				conn := server.Dial(t, append(retrier.DialOptions(), grpc.WithChainUnaryInterceptor(timeout.UnaryClientInterceptor(row.timeout)))...)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				err = conn.Invoke(ctx, getOrder, new(emptypb.Empty), new(emptypb.Empty))
				if status.Code(err) != row.code || server.Count(getOrder) != row.requests {
					t.Errorf("%v after %d requests; want %v after %d", err, server.Count(getOrder), row.code, row.requests)
				}
			})
		})
	}
}
