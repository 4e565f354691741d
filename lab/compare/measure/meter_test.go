// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQuartiles(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		values []float64
		want   Quartiles
	}{
		{[]float64{7}, Quartiles{7, 7, 7}},
		{[]float64{3, 1}, Quartiles{1.5, 2, 2.5}},
		{[]float64{5, 1, 4, 2, 3}, Quartiles{2, 3, 4}},
	} {
		if got := QuartilesOf(x.values); got != x.want {
			t.Errorf("of %v: %v; want %v", x.values, got, x.want)
		}
	}
	if got := QuartilesOf(nil); !math.IsNaN(got.Median) {
		t.Errorf("of nothing: %v; want NaN", got)
	}
}

func TestHeld(t *testing.T) {
	const size, slack = 64 << 20, 8 << 20
	before := Hold()
	held, stop := make([]byte, size), make(chan struct{})
	for range 10 {
		go func() { <-stop }()
	}
	with := Hold().Since(before)
	runtime.KeepAlive(held)
	close(stop)
	if with.Heap < size || with.Heap > size+slack || with.Goroutines != 10 {
		t.Errorf("%+v; want %d bytes and 10 goroutines", with, size)
	}
	if without := Hold().Since(before); without.Heap > slack {
		t.Errorf("%+v; want nothing", without)
	}
}

func TestMeterSeesAllocations(t *testing.T) {
	p := Process()
	began := p.Now()
	objects, bytes := p.Allocated()
	kept := make([]*[1024]byte, 100)
	for i := range kept {
		kept[i] = new([1024]byte)
	}
	objects2, bytes2 := p.Allocated()
	runtime.KeepAlive(kept)
	if objects2-objects < 100 || bytes2-bytes < 100<<10 {
		t.Errorf("%d objects, %d bytes; want at least 100, %d", objects2-objects, bytes2-bytes, 100<<10)
	}
	if p.Now() < began {
		t.Errorf("time went from %v to %v", began, p.Now())
	}
}
