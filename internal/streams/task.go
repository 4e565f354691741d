// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"cmp"
	"io"
)

// Ask returns the next order of a task.
func (c *Call) Ask(t *Task) (o Order) {
	if t.Kind == Goroutine {
		return c.askGoroutine(t)
	}
	c.beginTask(t)
	switch t.Kind {
	case NewStream:
		o = c.askNewStream(t)
	case SendMsg:
		o = c.askSendMsg(t)
	case CloseSend:
		o = c.askCloseSend(t)
	case RecvMsg:
		o = c.askRecvMsg(t)
	case Header:
		o = c.askHeader(t)
	default:
		o = c.askContext()
	}
	if o.Do == Return {
		c.endTask(t)
	}
	return o
}

// beginTask counts a call of the application, once.
func (c *Call) beginTask(t *Task) {
	if t.begun || t.Kind == Goroutine {
		return
	}
	t.begun, t.inside = true, c.telling
	c.elapse()
	c.calls++
	if t.Kind == SendMsg && t.Kept {
		t.index = c.kept
		c.kept++
	}
	if t.Kind == RecvMsg && t.Makes {
		c.receiving = true
	}
	c.acts.Moved = c.acts.Moved || c.set.Races // else no goroutine waits for messages
}

// endTask ends a call of the application.
func (c *Call) endTask(t *Task) {
	switch t.Kind {
	case RecvMsg:
		c.receiving = false
	case SendMsg:
		c.offered, c.acts.Moved = 0, c.acts.Moved || c.offered > 0
	default:
	}
	if c.calls--; c.calls == 0 {
		c.idleSince = c.now.At
	}
}

// Done records the result of a task's order, or of a call that did not ask. The caller reports the returned end, if there is
// one, before it asks again.
func (c *Call) Done(t *Task, r Result) End {
	if !t.begun && t.Kind != Goroutine {
		c.found(t)
	}
	a, did := t.on, t.did
	t.on, t.did = nil, Wait
	c.acts.Moved = true
	if r.Panicked {
		return c.cutShort(t, a, did)
	}
	if a == nil {
		return End{}
	}
	switch did {
	case Open:
		return c.opened(a, r.Err)
	case Send:
		return c.sent(t, a, r)
	case Close:
		a.sender = idle
		c.elapse()
		if c.engine == nil {
			c.timing.Request(c.now.At)
		} else {
			c.engine.Requested(a.number, c.now)
		}
		t.over, t.returns = true, Own
		return c.claimEnd(a, false)
	case GetHeader:
		return c.gotHeader(t, a, r)
	case Receive:
		if t.Kind == Goroutine {
			return c.brought(a, r.Err)
		}
		return c.received(t, a, r.Err)
	default:
		return End{}
	}
}

// found sets the order of a call that used an attempt without asking, and has a result to report.
func (c *Call) found(t *Task) {
	c.beginTask(t)
	t.on = c.findAttempt(t.Attempt)
	switch t.Kind {
	case SendMsg:
		t.did = Send
	case RecvMsg:
		t.did = Receive
	default:
		t.did, t.beside = GetHeader, true
	}
}

// cutShort handles a panic of an inner interceptor. Its task does not ask again.
func (c *Call) cutShort(t *Task, a *attempt, did Do) End {
	switch {
	case a == nil:
	case did == Open:
		a.sender, a.receiver = ended, ended
	case did == Send, did == Close:
		a.sender = ended
	case !t.beside:
		a.receiver = ended
	}
	if t.Kind == Goroutine && a != nil {
		a.goroutines--
	}
	if t.Kind != Goroutine {
		c.endTask(t)
	}
	return c.endPanicked(a)
}

// askNewStream opens the first attempt, or waits until a later one can be used.
func (c *Call) askNewStream(t *Task) Order {
	switch a := c.newestAttempt(); {
	case c.usable, c.set.Races && !c.Over():
		return Order{Do: Return}
	case c.Over():
		return c.end(t)
	case a != nil && a.sender == shut && a.goroutines == 0:
		return t.order(Open, a)
	default:
		return Order{Do: Wait}
	}
}

// toldTo reports whether t may return the end: the caller was told, or t may be a call of the caller's OnFinish, which must not wait
// for itself.
func (c *Call) toldTo(t *Task) bool { return c.told || t.inside }

// end returns the result of the call, once the caller was told.
func (c *Call) end(t *Task) Order {
	if !c.toldTo(t) {
		return Order{Do: Wait}
	}
	if c.later != nil && c.drain != nil && c.stopped == "" {
		c.shown, c.later = c.caller.Amend(c.later), nil
	}
	return Order{Do: Return, Returns: Final, Err: cmp.Or(c.shown, c.final)}
}

func (c *Call) opened(a *attempt, err error) End {
	if err != nil {
		a.sender, a.receiver = ended, ended
		return a.claimOnce(End{Err: err})
	}
	a.sender, a.receiver = idle, idle
	c.usable = true
	return c.claimEnd(a, false)
}

// claimOnce is claim, unless the end is already claimed.
func (a *attempt) claimOnce(e End) End {
	if a.claimed {
		return End{}
	}
	if e.Err == io.EOF {
		e.Err = nil
	}
	return a.claim(e)
}

// order gives a task an order on an attempt.
func (t *Task) order(do Do, a *attempt) Order {
	t.did, t.on, t.beside = do, a, false
	return Order{Do: do, Attempt: a.number}
}

// askGoroutine does for an attempt what the application's calls don't: it opens the attempt, sends it the kept messages, and
// finds out how it has ended if SendMsg fails. If attempts race, it also asks for headers, and receives a message while RecvMsg
// waits for one.
func (c *Call) askGoroutine(t *Task) Order {
	a := c.findAttempt(t.Attempt)
	if a == nil {
		return Order{Do: Return}
	}
	switch {
	case a.sender == shut && !c.Over():
		return t.order(Open, a)
	case a.sender == shut:
		a.sender, a.receiver = ended, ended
	case c.Over(), !a.live():
	case !a.deaf && a.sender == idle && c.behind(a) && a.given+1 == c.offered:
		return Order{Do: Wait} // SendMsg sends its own message
	case !a.deaf && a.sender == idle && c.behind(a):
		return c.giveKept(t, a)
	case c.committed != nil, !a.deaf && !c.set.Races:
	case a.receiver == idle && !a.asked:
		a.receiver = own
		return t.order(GetHeader, a)
	case !c.set.Races:
	case a.receiver == idle && a.asked && c.receiving:
		a.receiver = own
		return t.order(Receive, a)
	case a.receiver == own: // another goroutine is inside gRPC
	default:
		return Order{Do: Wait}
	}
	a.goroutines--
	return Order{Do: Return}
}

// giveKept sends an attempt the next kept message, or the close.
func (c *Call) giveKept(t *Task, a *attempt) Order {
	a.sender = own
	if a.given == c.kept {
		a.closed = true
		return t.order(Close, a)
	}
	o := t.order(Send, a)
	o.Message = a.given
	t.index = a.given
	a.given++
	return o
}
