// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
)

// fakeSubConn is a backend in tests without a connection.
type fakeSubConn struct {
	balancer.SubConn
	name      string
	shutdowns int
}

func (s *fakeSubConn) Shutdown() { s.shutdowns++ }

func fakeBackends(n int) []balancer.SubConn {
	backends := make([]balancer.SubConn, n)
	for i := range backends {
		backends[i] = &fakeSubConn{name: fmt.Sprint(i)}
	}
	return backends
}

func TestNewContext(t *testing.T) {
	t.Parallel()
	type key struct{}

	t.Run("is the parent but for the record", func(t *testing.T) {
		t.Parallel()
		parent, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Hour)
		ctx := NewContext(parent)
		deadline, ok := ctx.Deadline()
		if want, _ := parent.Deadline(); !ok || deadline != want {
			t.Errorf("deadline %v, %v; want %v", deadline, ok, want)
		}
		if v := ctx.Value(key{}); v != "value" {
			t.Errorf("value %v, want the parent's", v)
		}
		if v := ctx.Value(struct{}{}); v != nil {
			t.Errorf("value of an unknown key %v, want nil", v)
		}
		cancel()
		if ctx.Err() != context.Canceled {
			t.Errorf("error %v, want the parent's", ctx.Err())
		}
	})
	t.Run("found through other contexts", func(t *testing.T) {
		t.Parallel()
		call := NewContext(t.Context())
		attempt, cancel := context.WithCancel(context.WithValue(call, key{}, "value"))
		defer cancel()
		if recordOf(attempt) != recordOf(call) || recordOf(call) == nil {
			t.Error("the attempt's record is not the call's")
		}
	})
	t.Run("a call inside a call has its own", func(t *testing.T) {
		t.Parallel()
		outer := NewContext(t.Context())
		if inner := NewContext(outer); recordOf(inner) == recordOf(outer) {
			t.Error("two calls share a record")
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		var none context.Context
		if recordOf(none) != nil || recordOf(t.Context()) != nil {
			t.Error("a record without NewContext")
		}
	})
	t.Run("printed while attempts start", func(t *testing.T) {
		t.Parallel()
		ctx := NewContext(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { recordOf(ctx).tried.ClaimFirst(fakeBackends(1)[0]) })
		if text := fmt.Sprint(ctx); text != "context.Background.WithBackends" {
			t.Errorf("prints as %q", text)
		}
		wg.Wait()
	})
}
