// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package tried

import "testing"

func TestInUse(t *testing.T) {
	t.Parallel()
	const target = "dns:///orders"
	first, second := Use(target), Use(target)
	first()
	first() // has stopped already
	if !InUse(target) || InUse("dns:///another") {
		t.Error("want the target of the second channel to be in use, and no other")
	}
	if second(); InUse(target) {
		t.Error("in use after both have stopped")
	}
}

func BenchmarkInUse(b *testing.B) {
	defer Use("dns:///orders")()
	b.ReportAllocs()
	for b.Loop() {
		InUse("dns:///orders")
	}
}
