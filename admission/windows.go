// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

const (
	windowTimes = 1.5                     // a window is so many times as long as its attempts take on average: one long call hardly matters
	leastWindow = 1500 * time.Millisecond // and at least this long
	mostTook    = 30 * time.Second        // no attempt counts as longer, so that a window is bounded
	leastBusy   = 500 * time.Millisecond  // during which the very first responses come
)

// windows describes a service in the last two windows, of which the newer one isn't over. The rate of responses counts only time
// in which an attempt ran: a pause between two batches says nothing about the service. The zero value is empty.
type windows struct {
	older, newer window
	began        time.Duration // when newer began
	at           time.Duration // newer.busy is counted up to this time
}

type window struct {
	answers int
	misses  int           // missed deadlines
	busy    time.Duration // in which attempts ran
	inTime  int           // the most attempts that ran when an attempt was sent that was answered in time
	ended   int           // the attempts that were answered, or have missed a deadline
	took    time.Duration // the sum of their times
}

// pass counts the time until now, during which so many attempts ran.
func (w *windows) pass(now time.Duration, running int) {
	if w.at == 0 { // times may be negative
		w.at, w.began = now, now
	}
	if running > 0 && now > w.at {
		w.newer.busy += now - w.at
	}
	w.at = max(w.at, now)
	if now-w.began >= w.length() {
		w.older, w.newer, w.began = w.newer, window{}, now
	}
}

// length returns the length of a window.
func (w *windows) length() time.Duration {
	took, ended := w.older.took+w.newer.took, w.older.ended+w.newer.ended
	return max(leastWindow, time.Duration(windowTimes*float64(took)/float64(max(ended, 1))))
}

// recordEnd records how long an attempt took, until its response or its deadline.
func (w *windows) recordEnd(took time.Duration) {
	w.newer.ended++
	w.newer.took += min(max(took, 0), mostTook)
}

// perSecond returns the rate of responses.
func (w *windows) perSecond() float64 {
	return float64(w.older.answers+w.newer.answers) / max(w.older.busy+w.newer.busy, leastBusy).Seconds()
}

// inTime returns how many simultaneous attempts the service has answered in time.
func (w *windows) inTime() int { return max(w.older.inTime, w.newer.inTime) }

// missing reports whether too many deadlines were missed for a coincidence.
func (w *windows) missing() bool {
	misses, answers := w.older.misses+w.newer.misses, w.older.answers+w.newer.answers
	return misses >= 2 && 100*misses > answers
}
