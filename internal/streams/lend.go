// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"
	"time"
)

// Lend is Ask for a call of the application before which nothing is to be decided: the only attempt has everything, and the
// role is free. The driver needs neither Enter nor Exit, and tells the result with GiveBack, or else with Done. Lend returns
// false if the call has to ask. The order goes to o, which saves each message a copy.
func (c *Call) Lend(t *Task, o *Order, clock func() time.Duration) bool {
	switch {
	case !c.lends(t):
		return false
	case t.Kind == SendMsg: // the running attempt lacks just this message
		a := c.running[0]
		c.beginTask(t)
		a.given++
		a.sender, t.did, t.on, t.sent = app, Send, a, true
		o.Do, o.Attempt = Send, a.number
		return true
	case t.Kind == RecvMsg: // time counts only while the application waits for a message: see attempts.Settings.Uploads
		c.now.At = clock()
	}
	*o = c.Ask(t)
	return true
}

func (c *Call) lends(t *Task) bool {
	if c.Over() || c.slow || c.set.Races || len(c.running) != 1 {
		return false
	}
	a := c.running[0]
	switch t.Kind {
	case NewStream:
		return a.sender == shut && a.goroutines == 0
	case SendMsg:
		return t.Kept && c.lendsSender(a)
	case CloseSend:
		return c.lendsSender(a)
	case RecvMsg:
		return a.live() && a.receiver == idle
	default:
		return false
	}
}

func (c *Call) lendsSender(a *attempt) bool {
	return c.Keeps() && a.live() && a.sender == idle && a.given == c.kept
}

// GiveBack ends a call of Lend whose order has succeeded, if nobody wants its role, and nothing follows. Else it returns false,
// and the driver tells the result with Done.
func (c *Call) GiveBack(t *Task, clock func() time.Duration) bool {
	a := t.on
	if t.Kind == RecvMsg || c.stopped != "" || c.committed != nil || !a.live() || a.finished || c.behind(a) {
		return false
	}
	if t.Kind == CloseSend {
		c.now.At = clock()
	}
	moved := c.acts.Moved // nobody waits for this
	if t.Kind == SendMsg {
		t.on, t.did = nil, Wait
		a.take(t)
		c.endTask(t)
	} else {
		c.Done(t, Result{})
		c.Ask(t)
	}
	c.acts.Moved = moved
	return true
}

// FinishHeld is Finish for an attempt with a role that a task holds, which will report the end. It needs neither Enter nor
// Exit, and returns false if there is no such task.
func (c *Call) FinishHeld(n int, err error) bool {
	a := c.findAttempt(n)
	if a == nil || !a.held() {
		return false
	}
	c.Finish(n, err)
	return true
}

// AtOnce is Done for a RecvMsg at a time, as long as the call runs without the engine and nothing is to be decided: for a message,
// which commits the call, and for a success. Otherwise it returns false. If heard is true, the method is to be told of a response,
// which took so long.
func (c *Call) AtOnce(t *Task, err error, at time.Duration) (took time.Duration, heard, ok bool) {
	ends := err == io.EOF && c.set.ServerStreams || err == nil && !c.set.ServerStreams
	if c.Joined() || t.Kind != RecvMsg || err != nil && !ends {
		return 0, false, false
	}
	if !t.begun {
		c.found(t)
	}
	a := t.on
	t.on, t.did, c.now.At = nil, Wait, at
	if a.again = a.heard; !a.heard {
		a.heard = true
		took, heard = c.timing.Hear(at)
	}
	if a.receiver = idle; !ends {
		c.committed, t.over = a, true
		return took, heard, true
	}
	if a.claimed, c.answer, c.running = true, a, nil; err == nil {
		t.reply = a
	}
	tell, final := c.caller.Conclude(a.number)
	c.final, c.told, c.acts.Over = final, !tell, true
	return took, heard, true
}
