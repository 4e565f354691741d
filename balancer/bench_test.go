// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/tried"
)

// circle picks like round_robin, without its atomic counter.
type circle struct {
	backends []balancer.SubConn
	next     int
}

func (c *circle) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	c.next++
	return balancer.PickResult{SubConn: c.backends[c.next%len(c.backends)]}, nil
}

type otherKey struct{}

// attemptOf returns an attempt's context, as deep as gRPC makes it.
func attemptOf(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	for range 3 {
		ctx = context.WithValue(ctx, otherKey{}, "value")
	}
	return ctx, cancel
}

func TestAllocations(t *testing.T) {
	p := &picker{child: &circle{backends: fakeBackends(4)}, ready: 4}
	pick := func(ctx context.Context) {
		if _, err := p.Pick(balancer.PickInfo{Ctx: ctx}); err != nil {
			t.Fatal(err)
		}
	}
	bare := context.Background()
	for name, tc := range map[string]struct {
		call func()
		want float64
	}{
		"a pick without a record": {func() { pick(bare) }, 0},
		"a record and its pick":   {func() { kept = NewContext(bare); pick(kept) }, 1},
		"a record and the picks of five attempts": {func() {
			ctx := NewContext(bare)
			for range 5 {
				pick(ctx)
			}
		}, 1},
		"whether a target is in use": {func() { tried.InUse("dns:///orders") }, 0},
	} {
		if got := testing.AllocsPerRun(1000, tc.call); got != tc.want {
			t.Errorf("%s: %v allocations, want %v", name, got, tc.want)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	backends := fakeBackends(4)
	for name, bench := range map[string]struct {
		record bool
		picker balancer.Picker
		used   int
	}{
		"child alone":   {picker: &circle{backends: backends}},
		"no record":     {picker: &picker{child: &circle{backends: backends}, ready: 4}},
		"first attempt": {record: true, picker: &picker{child: &circle{backends: backends}, ready: 4}},
		"retry":         {record: true, used: 1, picker: &picker{child: &circle{backends: backends}, ready: 4}},
		"all tried":     {record: true, used: 4, picker: &picker{child: &circle{backends: backends}, ready: 4}},
	} {
		b.Run(name, func(b *testing.B) {
			call := context.Background()
			if bench.record {
				call = NewContext(call)
			}
			ctx, cancel := attemptOf(call)
			defer cancel()
			info := balancer.PickInfo{Ctx: ctx}
			r := recordOf(call)
			b.ReportAllocs()
			for b.Loop() {
				if r != nil {
					r.tried = tried.Backends[balancer.SubConn]{}
					for _, used := range backends[:bench.used] {
						r.tried.Claim(used)
					}
				}
				if _, err := bench.picker.Pick(info); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var kept context.Context // on the heap

func BenchmarkNewContext(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		kept = NewContext(context.Background())
	}
}
