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
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

func TestWatchFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	synctest.Test(t, func(t *testing.T) {
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
		warnings, reloads := make(chan string, 10), make(chan interceptor.ReloadEvent, 10)
		r, err := interceptor.Watch(ctx, path, interceptor.WithObserver(interceptor.Observer{
			Warning: func(p policy.Diagnostic) { warnings <- p.String() },
			Reload:  func(e interceptor.ReloadEvent) { reloads <- e },
		}))
		if err != nil {
			t.Fatal(err)
		}
		first := r.Policy()
		if first.Source != path || len(first.Hash) != 12 || first.Since.IsZero() {
			t.Errorf("at first: %+v", first)
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
		if e := <-reloads; e.Source != path || e.Hash != "" || e.Changes != nil || !strings.Contains(fmt.Sprint(e.Err), "retry.yaml:3:") {
			t.Errorf("of a bad change: %+v", e)
		}
		if now := r.Policy(); now != first {
			t.Errorf("after a bad change: %+v; want %+v", now, first)
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
		now := r.Policy()
		if e := <-reloads; e.Source != path || e.Hash != now.Hash || e.Err != nil || fmt.Sprint(e.Changes) != "[policy "+get+" changed]" {
			t.Errorf("of a good change: %+v", e)
		}
		if now.Hash == first.Hash || now.Since.Before(first.Since) {
			t.Errorf("after a good change: %+v, and before it %+v", now, first)
		}
	})
}
