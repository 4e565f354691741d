// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import "time"

// unwaited is the part of an attempt's time, one in so many, that the application may let it go without waiting for it.
// How long an attempt took that was left alone for longer says nothing of its method.
const unwaited = 8

// Paused reports that for the time d until now no call of the application has waited for anything: the attempts that
// run are not slow by that time. Pauses of one call do not overlap. A driver whose application always waits, as in a
// unary call, has none to report; others report one when a call of the application begins to wait, and before each
// other event while none does.
func (c *Call) Paused(d time.Duration, now Now) Step {
	step := c.step()
	for i := range c.running {
		a := &c.running[i]
		a.pause(min(d, now.At-a.began), c.set.Deadline)
	}
	return c.finish(step, now)
}

// pause stops the clock of an attempt for so long.
func (a *attempt) pause(d, deadline time.Duration) {
	if d <= 0 {
		return
	}
	a.paused += d
	if a.slowAt = later(a.slowAt, d); a.slowAt >= deadline {
		a.slowAt = Never
	}
}

// Heard reports the first message of attempt n, whatever has committed the call to it before, or is about to: how long
// that took is how long the attempt took. One that was cancelled for another says nothing.
func (c *Call) Heard(n int, now Now) {
	for i := range c.running {
		if a := &c.running[i]; a.number == n && a.cancelled == no {
			c.answered(a, now.At)
			c.hear(a, now.At)
			c.countAnswer(a, now.At)
			a.slowAt = Never
		}
	}
}

// hear notes the first message of an attempt, or the end of one that brought none.
func (c *Call) hear(a *attempt, at time.Duration) {
	if a.heard {
		return
	}
	a.heard, a.heardIn = true, a.took(at)
	if c.set.Latency != nil && a.measures(at) {
		c.set.Latency.Record(a.heardIn, at)
	}
}

// took is how long an attempt has taken until then, by its own clock.
func (a *attempt) took(at time.Duration) time.Duration { return at - a.began - a.paused }

// measures reports whether the time that an attempt took says how fast its method is.
func (a *attempt) measures(at time.Duration) bool { return unwaited*a.paused <= at-a.began }
