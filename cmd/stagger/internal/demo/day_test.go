// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"
	"time"
)

func TestTheDayFitsIntoAMinute(t *testing.T) {
	t.Parallel()
	if got := newDay(workers).length(); got > 30*time.Second {
		t.Errorf("the day takes %v; want at most half a minute, since a demo has at most one", got)
	}
}

func TestASpanIsWhereThePhaseStands(t *testing.T) {
	t.Parallel()
	d := day{phases: []phase{{name: "calm", length: 3 * time.Second}, {label: "blip", length: time.Second}, {label: "pulse", length: 2 * time.Second}}}
	if from, to := d.span("pulse"); from != 4*time.Second || to != 6*time.Second {
		t.Errorf("pulse from %v to %v; want 4s to 6s", from, to)
	}
	if from, to := d.span("nothing"); from != 0 || to != 0 {
		t.Errorf("a phase that is not there from %v to %v; want 0 to 0", from, to)
	}
}

func TestCapacityIsOfAllBackendsTogether(t *testing.T) {
	t.Parallel()
	s := shape{backends: 4, workers: 3, service: 20 * time.Millisecond}
	if got := s.capacity(); got != 600 {
		t.Errorf("capacity %v; want 600 requests per second", got)
	}
}
