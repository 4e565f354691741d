// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import "time"

// admit asks whether the call may be made. If so, its first attempt is counted.
func (c *Call) admit(at time.Duration) bool {
	return c.set.Admission == nil || c.set.Admission.Enter(at, c.left(at))
}

// left is the time until the call's deadline.
func (c *Call) left(at time.Duration) time.Duration {
	if c.set.Deadline == Never {
		return Never
	}
	return c.set.Deadline - at
}

// countAnswer tells admission that an attempt was answered.
func (c *Call) countAnswer(a *attempt, at time.Duration) {
	if a.counted && a.measures(at) {
		a.counted = false
		c.set.Admission.Answered(at, a.took(at))
	}
	c.uncount(a)
}

// uncount tells admission that an attempt has ended or is given up.
func (c *Call) uncount(a *attempt) {
	if a.counted {
		a.counted = false
		c.set.Admission.Leave()
	}
}
