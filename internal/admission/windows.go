// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

const (
	leastWindow = 1500 * time.Millisecond // a window is as long as the longest deadline in it, and at least this
	leastBusy   = 500 * time.Millisecond  // in which the first answers of all come
)

// windows is what a service has done in the last two windows. The newer one isn't over. The rate of the answers counts only
// time in which an attempt ran: a pause between two batches says nothing of the service. The zero value has seen nothing.
type windows struct {
	older, newer window
	began        time.Duration // newer
	at           time.Duration // until when newer.busy is counted
}

type window struct {
	answers int
	misses  int           // of deadlines
	busy    time.Duration // in which attempts ran
	inTime  int           // the most attempts that ran when one was sent that was answered in time
	longest time.Duration // deadline
}

// pass counts the time until now, in which so many attempts ran.
func (w *windows) pass(now time.Duration, running int) {
	if w.at == 0 { // clocks may stand before 0
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

// length is how long a window is.
func (w *windows) length() time.Duration {
	return max(leastWindow, w.older.longest, w.newer.longest)
}

// perSecond is the rate of the answers.
func (w *windows) perSecond() float64 {
	return float64(w.older.answers+w.newer.answers) / max(w.older.busy+w.newer.busy, leastBusy).Seconds()
}

// inTime is how many attempts the service has answered in time that ran at once.
func (w *windows) inTime() int { return max(w.older.inTime, w.newer.inTime) }

// missing reports whether so many deadlines were missed that it is no coincidence.
func (w *windows) missing() bool {
	misses, answers := w.older.misses+w.newer.misses, w.older.answers+w.newer.answers
	return misses >= 2 && 100*misses > answers
}
