// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/lab/compare/measure"
)

// once is a plan that makes few operations.
func once() measure.Plan {
	return measure.Plan{Sessions: 1, Rounds: 1, Slice: 1, Seed: 1, Meter: new(ticking)}
}

// ticking is a meter on which everything takes the same time.
type ticking struct{ now time.Duration }

func (m *ticking) Now() time.Duration     { m.now++; return m.now }
func (*ticking) Processor() time.Duration { return 0 }
func (*ticking) Allocated() (_, _ uint64) { return 0, 0 }
func (*ticking) Settle()                  {}

// TestClientsMakeTheAttemptsCompared is what keeps the tables from comparing broken set-ups:
// run fails if a client makes more or fewer attempts.
func TestClientsMakeTheAttemptsCompared(t *testing.T) {
	t.Parallel()
	for _, c := range comparisons() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				o, err := c.run(once())
				if err != nil {
					t.Fatal(err)
				}
				if len(o.costs) != len(c.goroutines) || len(o.costs[0])+len(o.absent) != len(c.clients) {
					t.Errorf("%d lists of %d costs, %d absent; want %d of %d together", len(o.costs), len(o.costs[0]), len(o.absent), len(c.goroutines), len(c.clients))
				}
				if !slices.ContainsFunc(o.costs[0], func(x measure.Cost) bool { return x.Name == c.base }) {
					t.Errorf("the base %q is not there", c.base)
				}
				if took := time.Since(began); took > time.Millisecond {
					t.Errorf("took %v; nothing is to wait", took)
				}
			})
		})
	}
}

// named is the comparison of a name.
func named(t *testing.T, name string) comparison {
	t.Helper()
	i := slices.IndexFunc(comparisons(), func(c comparison) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no comparison %q", name)
	}
	return comparisons()[i]
}

func TestOtherSetUpIsNotCompared(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, want string
		change     func(*comparison)
	}{
		{"one failure", "gRPC, no retries: rpc error: code = Unavailable desc = no", func(c *comparison) { c.clients = append(c.clients, bare) }},
		{"success", "gRPC's retries made 10 attempts for 5 operations; want 5", func(c *comparison) { c.answer, c.clients, c.base = failOdd, []client{builtIn}, builtIn.name }},
		{"one failure, stub", "stagger made 5 attempts for 5 operations; want 10", func(c *comparison) { c.answer = succeed; c.clients = []client{ecosystem, stagger}; c.base = ours }},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := named(t, x.name)
			x.change(&c)
			if _, err := c.run(once()); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v; want %s", x.name, err, x.want)
			}
		})
	}
}
