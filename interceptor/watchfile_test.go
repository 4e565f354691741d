// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

func TestAWatchedFileIsFollowedAndABadOneRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	write := func(attempts string) {
		text := "methodConfig:\n- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]\n  retryPolicy: {maxAttempts: " + attempts +
			", initialBackoff: 0.000000001s, maxBackoff: 0.000000001s, backoffMultiplier: 2, retryableStatusCodes: [14], budget: NONE}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	warnings := make(chan string, 10)
	r, err := interceptor.Watch(ctx, path, interceptor.WithObserver(interceptor.Observer{
		Warning: func(p policy.Diagnostic) { warnings <- p.String() },
	}))
	if err != nil {
		t.Fatal(err)
	}
	unary := r.Unary()
	attempts := func() (n int) {
		_ = unary(ctx, get, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			n++
			return status.Error(codes.Unavailable, "down")
		})
		return n
	}
	if got := attempts(); got != 2 || r.Err() != nil {
		t.Errorf("%d attempts, %v", got, r.Err())
	}
	write("many")
	if w := <-warnings; !strings.Contains(w, "is refused") || !strings.Contains(w, "retry.yaml:3:") {
		t.Error(w)
	}
	if got := attempts(); got != 2 || !strings.Contains(fmt.Sprint(r.Err()), "retry.yaml:3:") {
		t.Errorf("after a bad change: %d attempts, %v", got, r.Err())
	}
	write("7") // more than a Retrier allows, which is a warning to wait for
	if w := <-warnings; !strings.Contains(w, "is cut to 5") {
		t.Error(w)
	}
	if got := attempts(); got != 5 {
		t.Errorf("after a good change: %d attempts", got)
	}
}
