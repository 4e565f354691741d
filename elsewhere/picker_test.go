// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/testkit"
)

// scriptedPicker picks the backends of its script, in a circle, and counts the picks.
type scriptedPicker struct {
	mu     sync.Mutex
	script []any // a balancer.SubConn or an error
	next   int
	done   []balancer.DoneInfo
}

func (p *scriptedPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.next % len(p.script)
	p.next++
	if err, ok := p.script[at].(error); ok {
		return balancer.PickResult{}, err
	}
	return balancer.PickResult{SubConn: p.script[at].(balancer.SubConn), Done: func(info balancer.DoneInfo) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.done = append(p.done, info)
	}}, nil
}

func scripted[T any](script ...T) *scriptedPicker {
	p := &scriptedPicker{}
	for _, entry := range script {
		p.script = append(p.script, entry)
	}
	return p
}

// visit sends an attempt of the call and returns the index of its backend. The attempt stays open.
func visit(call context.Context, t *testing.T, p *picker, backends []balancer.SubConn) int {
	t.Helper()
	result := testkit.Must(p.Pick(balancer.PickInfo{Ctx: call}))(t)
	return slices.Index(backends, result.SubConn)
}

func TestPicker(t *testing.T) {
	t.Parallel()

	t.Run("without a record the child's pick stands", func(t *testing.T) {
		t.Parallel()
		b := fakeBackends(2)
		p := &picker{child: scripted(b[0]), ready: 2}
		var none context.Context
		for _, ctx := range []context.Context{t.Context(), none} {
			if got := []int{visit(ctx, t, p, b), visit(ctx, t, p, b)}; !slices.Equal(got, []int{0, 0}) {
				t.Errorf("visited %v, want 0 and 0", got)
			}
		}
	})
	t.Run("a first attempt goes where the child says", func(t *testing.T) {
		t.Parallel()
		b := fakeBackends(2)
		child := scripted(b[1], b[0])
		p := &picker{child: child, ready: 2}
		if got := visit(NewContext(t.Context()), t, p, b); got != 1 || child.next != 1 || len(child.done) != 0 {
			t.Errorf("visited %d after %d picks, %d of them given back; want 1 after 1, 0", got, child.next, len(child.done))
		}
	})
	t.Run("later attempts pass over", func(t *testing.T) {
		t.Parallel()
		b := fakeBackends(3)
		p := &picker{child: scripted(b[0], b[0], b[1], b[1], b[0], b[2]), ready: 3}
		call := NewContext(t.Context())
		if got := []int{visit(call, t, p, b), visit(call, t, p, b), visit(call, t, p, b)}; !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("visited %v, want 0, 1, 2", got)
		}
	})
	t.Run("a later attempt goes to a random backend and leaves the child where it was", func(t *testing.T) {
		t.Parallel()
		b := fakeBackends(6)
		child := scripted(b...)
		p := &picker{child: child, ready: 6}
		var visits [6]int // of later attempts, by their distance to the first
		for i := range 300 {
			call := NewContext(t.Context())
			first, second, third := visit(call, t, p, b), visit(call, t, p, b), visit(call, t, p, b)
			if first != i%6 || second == first || third == first || third == second {
				t.Fatalf("call %d visited %d, %d, %d; want %d and then others", i, first, second, third, i%6)
			}
			visits[(second-first+6)%6]++
			visits[(third-first+6)%6]++
		}
		if visits[0] > 0 || slices.Min(visits[1:]) < 60 {
			t.Errorf("600 later attempts visited %v; want about 120 each but the first", visits)
		}
		if want := 600 * 5; len(child.done) != want {
			t.Errorf("%d picks were given back, want %d", len(child.done), want)
		}
	})
	t.Run("one backend only is picked once an attempt", func(t *testing.T) {
		t.Parallel()
		b := fakeBackends(1)
		child := scripted(b[0])
		p := &picker{child: child, ready: 1}
		call := NewContext(t.Context())
		for range 3 {
			visit(call, t, p, b)
		}
		if child.next != 3 || len(child.done) != 0 {
			t.Errorf("%d picks, %d given back; want 3 and 0", child.next, len(child.done))
		}
	})
	t.Run("metadata and Done of the pick are the child's", func(t *testing.T) {
		t.Parallel()
		b := fakeBackends(2)
		var done []string
		picks := []balancer.PickResult{
			{SubConn: b[0], Metadata: metadata.Pairs("backend", "0"), Done: func(balancer.DoneInfo) { done = append(done, "0") }},
			{SubConn: b[1], Metadata: metadata.Pairs("backend", "1"), Done: func(balancer.DoneInfo) { done = append(done, "1") }},
		}
		n := 0
		p := &picker{ready: 2, child: pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
			n++
			return picks[max(0, n-2)], nil // 0, 0, 1
		})}
		call := NewContext(t.Context())
		visit(call, t, p, b)
		result, err := p.Pick(balancer.PickInfo{Ctx: call})
		if err != nil || result.SubConn != b[1] || result.Metadata.Get("backend")[0] != "1" {
			t.Fatalf("picked %v with error %v, want backend 1 with its metadata", result, err)
		}
		result.Done(balancer.DoneInfo{})
		if want := []string{"0", "1"}; !slices.Equal(done, want) {
			t.Errorf("Done was called for %v, want for the pick passed over and then, by gRPC, for the other: %v", done, want)
		}
	})
	t.Run("a pick without Done", func(t *testing.T) {
		t.Parallel()
		b := fakeBackends(2)
		p := &picker{ready: 2, child: pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
			return balancer.PickResult{SubConn: b[0]}, nil
		})}
		call := NewContext(t.Context())
		if got := []int{visit(call, t, p, b), visit(call, t, p, b)}; !slices.Equal(got, []int{0, 0}) {
			t.Errorf("visited %v, want 0 and 0", got)
		}
	})
}

// same compares errors as gRPC does.
func same(one, other any) bool { return one == other }

type pickerFunc func(balancer.PickInfo) (balancer.PickResult, error)

func (f pickerFunc) Pick(info balancer.PickInfo) (balancer.PickResult, error) { return f(info) }

func TestPickerErrors(t *testing.T) {
	t.Parallel()
	failures := map[string]error{
		"no SubConn available": balancer.ErrNoSubConnAvailable,
		"drop":                 status.Error(codes.Unavailable, "dropped"),
		"plain":                errors.New("all backends are down"),
	}
	for name, failure := range failures {
		t.Run("of a first pick is the call's/"+name, func(t *testing.T) {
			t.Parallel()
			b := fakeBackends(1)
			p := &picker{child: scripted[any](failure, b[0], failure), ready: 1}
			call := NewContext(t.Context())
			for i, want := range []error{failure, nil, failure} {
				if _, err := p.Pick(balancer.PickInfo{Ctx: call}); !same(err, want) {
					t.Errorf("pick %d: error %v, want %v", i, err, want)
				}
			}
		})
		t.Run("of a further pick is not/"+name, func(t *testing.T) {
			t.Parallel()
			b := fakeBackends(2)
			child := scripted[any](b[0], b[0], failure)
			p := &picker{child: child, ready: 2}
			call := NewContext(t.Context())
			if got := []int{visit(call, t, p, b), visit(call, t, p, b)}; !slices.Equal(got, []int{0, 0}) {
				t.Errorf("visited %v, want 0 and 0", got)
			}
			if len(child.done) != 0 {
				t.Errorf("%d picks were given back, want none: both are in use", len(child.done))
			}
		})
	}
}

// leastLoaded picks the backend with the fewest open picks, or the first of equals, as least_request would if it compared all.
type leastLoaded struct {
	mu       sync.Mutex
	backends []balancer.SubConn
	load     []int
}

func (p *leastLoaded) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	least := 0
	for i, n := range p.load {
		if n < p.load[least] {
			least = i
		}
	}
	p.load[least]++
	return balancer.PickResult{SubConn: p.backends[least], Done: func(balancer.DoneInfo) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.load[least]--
	}}, nil
}

func TestPicksAreHeldToTheEnd(t *testing.T) {
	t.Parallel()
	b := fakeBackends(3)
	child := &leastLoaded{backends: b, load: []int{0, 2, 5}}
	p := &picker{child: child, ready: 3}
	call := NewContext(t.Context())
	for want := range 2 {
		result := testkit.Must(p.Pick(balancer.PickInfo{Ctx: call}))(t)
		if got := slices.Index(b, result.SubConn); got != want {
			t.Errorf("visited %d, want %d, which is the next in load", got, want)
		}
		result.Done(balancer.DoneInfo{Err: errors.New("failed fast")})
	}
	if want := []int{0, 2, 5}; !slices.Equal(child.load, want) {
		t.Errorf("load is %v after all is done, want %v as before", child.load, want)
	}
}
