// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/hooks/admitting"
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
	for _, took := range []time.Duration{-time.Hour, time.Hour, admitting.Never} {
		for range 3 {
			w.recordEnd(took)
			if got := w.length(); got < leastWindow || got > time.Minute {
				t.Errorf("after %v: a window of %v; want 1.5 s to 1 minute", took, got)
			}
		}
	}
}

// A window is 1.5 times as long as the attempts of this and the last window have taken on average, each at most 30 s.
func TestWindows_LengthIsThatOfAttempts(t *testing.T) {
	t.Parallel()
	var w windows
	w.recordEnd(4 * time.Second)
	w.recordEnd(6 * time.Second)
	if w.length() != 7500*ms {
		t.Errorf("after attempts of 4 s and 6 s: %v; want 7.5s", w.length())
	}
	w.older, w.newer = w.newer, window{}
	w.recordEnd(admitting.Never)
	if w.length() != 20*time.Second {
		t.Errorf("after one of 30 s at most, too: %v; want 20s", w.length())
	}
}

func TestWindows_Pass(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]int{leastWindow - 1: 3, leastWindow: 0} {
		w := windows{newer: window{answers: 3}, began: now, at: now}
		if w.perSecond() != 6 { // in the least time
			t.Errorf("%v a second; want 6", w.perSecond())
		}
		if w.pass(now+after, 1); w.newer.answers != want {
			t.Errorf("after %v: %d answers in the window; want %d", after, w.newer.answers, want)
		}
	}
}
