// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"
)

// BenchmarkGate is what a gate costs an attempt that is let pass and answered.
func BenchmarkGate(b *testing.B) {
	b.ReportAllocs()
	g := new(gate)
	for at := now; b.Loop(); at += ms {
		g.answer(at, 20*ms, time.Second, g.enter(at, time.Second))
	}
}
