// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"testing"

	"google.golang.org/grpc/balancer"
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
	} {
		if got := testing.AllocsPerRun(1000, tc.call); got != tc.want {
			t.Errorf("%s: %v allocations, want %v", name, got, tc.want)
		}
	}
}

var kept context.Context // on the heap
