// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math"
	"testing"
	"time"
)

// serve plays n answers, one after the other, with their latency and the pauses in between.
func (w *windows) serve(n int, took, pause time.Duration) {
	for range n {
		w.pass(w.at+pause, 0)
		w.pass(w.at+took, 1)
		w.newer.answers++
	}
}

func TestWindows_PausesDoNotCount(t *testing.T) {
	t.Parallel()
	for _, start := range []time.Duration{-time.Hour, time.Hour} {
		for _, pause := range []time.Duration{0, 100 * ms, 10 * time.Second} {
			var w windows
			w.pass(start, 0)
			if w.serve(100, 100*ms, pause); math.Abs(w.perSecond()-10) > 1 && pause < time.Second {
				t.Errorf("from %v, pauses of %v: %v a second; about 10", start, pause, w.perSecond())
			}
			if pause > time.Second && w.perSecond() > 11 {
				t.Errorf("from %v, pauses of %v: %v a second; about 10 at most", start, pause, w.perSecond())
			}
		}
	}
}

func TestWindows_Forget(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ took, after time.Duration }{
		"short answers": {time.Second, 2*leastWindow + time.Second},
		"long answers":  {20 * time.Second, 2*30*time.Second + time.Second},
	} {
		var w windows
		w.pass(time.Hour, 0)
		w.newer.inTime = 7
		w.recordEnd(row.took)
		w.serve(1, row.took, 0)
		if w.inTime() != 7 {
			t.Errorf("%s: %d at once after one answer; want 7", name, w.inTime())
		}
		for w.at < time.Hour+row.after+row.took {
			w.recordEnd(row.took)
			w.serve(1, 100*ms, 0)
		}
		if w.inTime() != 0 {
			t.Errorf("%s: %d at once after %v; want it forgotten", name, w.inTime(), row.after)
		}
	}
}

// A window is bounded, whatever times attempts are reported with.
func TestWindows_Length(t *testing.T) {
	t.Parallel()
	var w windows
	for _, took := range []time.Duration{-time.Hour, time.Hour, Never} {
		for range 3 {
			w.recordEnd(took)
			if got := w.length(); got < leastWindow || got > time.Minute {
				t.Errorf("after %v: a window of %v; want 1.5 s to 1 minute", took, got)
			}
		}
	}
}
