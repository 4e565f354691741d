// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"strconv"
	"sync"
	"testing"
)

func TestMethodTable(t *testing.T) {
	t.Parallel()
	var table methodTable[methodKey, int]
	key := func(i int) methodKey {
		return methodKey{"dns:///orders", "/acme.orders.v1.OrderService/Get" + strconv.Itoa(i)}
	}
	first := table.find(key(0), func() *int { return new(0) })
	for i := 1; i < mostMethods; i++ {
		if table.find(key(i), func() *int { return new(i) }) == nil {
			t.Fatalf("no entry for method %d of %d", i, mostMethods)
		}
	}
	if table.find(key(mostMethods), func() *int { return new(0) }) != nil {
		t.Errorf("an entry for method %d; want at most %d", mostMethods+1, mostMethods)
	}
	if again := table.find(key(0), func() *int { return new(0) }); again != first {
		t.Error("the second look-up gave another entry")
	}
	if other := table.find(methodKey{"dns:///payments", key(7).method}, func() *int { return new(0) }); other != nil {
		t.Error("the entry of another target's method")
	}
}

func TestMethodTable_OneEntryForAll(t *testing.T) {
	t.Parallel()
	var (
		table methodTable[methodKey, int]
		found [8]*int
		all   sync.WaitGroup
	)
	for i := range found {
		all.Go(func() { found[i] = table.find(methodKey{"t", "m"}, func() *int { return new(int) }) })
	}
	all.Wait()
	for i := range found {
		if found[i] == nil || found[i] != found[0] {
			t.Error("look-ups at once gave several entries")
		}
	}
}

func TestMethodTable_FindAllocatesNothing(t *testing.T) {
	var table methodTable[methodKey, int]
	create := func() *int { return new(int) }
	table.find(methodKey{"t", "m"}, create)
	if n := testing.AllocsPerRun(100, func() { table.find(methodKey{"t", "m"}, create) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
