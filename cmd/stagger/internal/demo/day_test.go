// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/internal/tools/outage"
)

const ms = time.Millisecond

func TestDayFitsIntoAMinute(t *testing.T) {
	t.Parallel()
	if got := newDay(workers).Length(); got > 30*time.Second {
		t.Errorf("the day takes %v; want at most half a minute, since a demo has at most one", got)
	}
}

func TestDaySpan(t *testing.T) {
	t.Parallel()
	d := newDay(1)
	if from, to := d.span("blip"); from != 3*time.Second || to != 3150*ms {
		t.Errorf("blip from %v to %v; want 3s to 3.15s", from, to)
	}
	if from, to := d.span("calm"); from != 0 || to != 0 {
		t.Errorf("a phase that is not in the tables from %v to %v; want 0 to 0", from, to)
	}
	if want := []string{"blip", "one of four", "outage", "pulse", "after the pulse"}; !slices.Equal(d.labels(), want) {
		t.Errorf("labels %q; want %q", d.labels(), want)
	}
}

func TestDayCalls(t *testing.T) {
	t.Parallel()
	d := newDay(20) // many calls, so that chance evens out
	calls := d.calls(7)
	if !slices.Equal(calls, d.calls(7)) {
		t.Error("the calls of one seed differ")
	}
	creates := func(c outage.Call) bool { return c.Method == orders.CreateOrder }
	created := len(calls) - len(slices.DeleteFunc(slices.Clone(calls), creates))
	if got := float64(created) / float64(len(calls)); math.Abs(got-orderShare) > 0.005 {
		t.Errorf("%.4f of the calls create an order; want about %v", got, orderShare)
	}
}
