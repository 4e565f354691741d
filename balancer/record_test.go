// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

func picksOf(backends ...balancer.SubConn) []balancer.PickResult {
	picks := make([]balancer.PickResult, len(backends))
	for i, b := range backends {
		picks[i].SubConn = b
	}
	return picks
}

func TestRecord(t *testing.T) {
	t.Parallel()
	newRecord := func() *record { return recordOf(NewContext(t.Context())) }

	t.Run("a backend is claimed once", func(t *testing.T) {
		t.Parallel()
		r, b := newRecord(), fakeBackends(2)
		if !r.claim(b[0]) || !r.claim(b[1]) || r.claim(b[0]) || r.claim(b[1]) {
			t.Error("want true for each backend once")
		}
	})
	t.Run("the oldest is the one used longest ago", func(t *testing.T) {
		t.Parallel()
		r, b := newRecord(), fakeBackends(3)
		for _, backend := range b {
			r.claim(backend)
		}
		var order []int
		for range 7 {
			order = append(order, r.claimOldest(picksOf(b[2], b[0], b[1])))
		}
		if want := []int{1, 2, 0, 1, 2, 0, 1}; !slices.Equal(order, want) {
			t.Errorf("claimed picks %v, want %v", order, want)
		}
	})
	t.Run("the oldest of those picked", func(t *testing.T) {
		t.Parallel()
		r, b := newRecord(), fakeBackends(3)
		for _, backend := range b {
			r.claim(backend)
		}
		if i := r.claimOldest(picksOf(b[2], b[1], b[1])); i != 1 {
			t.Errorf("claimed pick %d, want 1: its backend was used before that of pick 0", i)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		t.Parallel()
		r, b := newRecord(), fakeBackends(maxBackends+2)
		for _, backend := range b {
			r.claim(backend)
		}
		if r.n != maxBackends || !slices.Equal(r.used[:], b[2:]) {
			t.Errorf("knows %d backends, want the last %d in order", r.n, maxBackends)
		}
		if i := r.claimOldest(picksOf(b[2], b[1])); i != 1 {
			t.Errorf("claimed pick %d, want 1: a forgotten backend is the oldest", i)
		}
	})
	t.Run("attempts that start together part", func(t *testing.T) {
		t.Parallel()
		r, b := newRecord(), fakeBackends(1)
		var claims atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if r.claim(b[0]) {
					claims.Add(1)
				}
			})
		}
		wg.Wait()
		if n := claims.Load(); n != 1 {
			t.Errorf("%d of 16 attempts claimed the backend, want 1", n)
		}
	})
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
		wg.Go(func() { recordOf(ctx).claim(fakeBackends(1)[0]) })
		if text := fmt.Sprint(ctx); text != "context.Background.WithBackends" {
			t.Errorf("prints as %q", text)
		}
		wg.Wait()
	})
}

// A context type that package context does not know costs a goroutine for each context made from it, unless it hands
// on the Done channel and the value of its parent.
func TestNewContextStartsNoGoroutines(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := NewContext(parent)
	before := runtime.NumGoroutine()
	for range 100 {
		_, cancel := context.WithCancel(ctx)
		defer cancel()
	}
	if n := runtime.NumGoroutine() - before; n >= 100 {
		t.Errorf("%d goroutines for 100 attempts, want none", n)
	}
}
