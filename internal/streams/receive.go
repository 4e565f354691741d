// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"

	"github.com/stagger-go/stagger/internal/decision"
)

func (c *Call) askRecvMsg(t *Task) Order {
	switch a := c.committed; {
	case c.eof && !c.Over(), c.Over() && !c.toldTo(t):
		return Order{Do: Wait} // another task reports the end, or tells the caller: the application may ask for the trailer next
	case t.over:
		return Order{Do: Return, Returns: t.returns}
	case c.eof:
		return Order{Do: Return, Returns: EOF}
	case c.Over():
		return c.recvAfterEnd(t)
	case a != nil:
		return c.recvCommitted(t, a)
	case !c.set.Races:
		return c.recvFrom(t, c.newestAttempt())
	case !t.Makes:
		return c.recvOldest(t)
	default:
		return Order{Do: Wait} // the attempts' goroutines receive
	}
}

// recvFrom makes RecvMsg receive from an attempt, if no other task receives from it.
func (c *Call) recvFrom(t *Task, a *attempt) Order {
	if a == nil || !a.receiver.free() {
		return Order{Do: Wait}
	}
	a.receiver, a.beside = app, RecvMsg
	return t.order(Receive, a)
}

func (c *Call) recvCommitted(t *Task, a *attempt) Order {
	switch {
	case c.instead != nil:
		return Order{Do: Wait}
	case a.brought && c.set.ServerStreams:
		a.brought = false
		return Order{Do: Return, Returns: Brought, Attempt: a.number}
	default:
		return c.recvFrom(t, a)
	}
}

// recvOldest commits the call to its oldest attempt, because no message can be made for another one.
func (c *Call) recvOldest(t *Task) Order {
	for _, a := range c.running {
		if a.live() && a.opened() && c.commit(a, decision.CommitMessage) {
			return c.recvCommitted(t, a)
		}
	}
	return Order{Do: Wait}
}

// recvAfterEnd returns what the call's attempt had received before the end; it no longer affects the engine. The application
// gets the messages and io.EOF. If the call was stopped, an error is replaced by the call's own.
func (c *Call) recvAfterEnd(t *Task) Order {
	for _, a := range []*attempt{c.committed, c.answer} {
		if a != nil && a.brought {
			a.brought, c.eof = false, !c.set.ServerStreams
			return Order{Do: Return, Returns: Brought, Attempt: a.number}
		}
	}
	if t.reply != nil && t.reply == c.answer {
		c.eof = true
		return Order{Do: Return}
	}
	if d := c.drain; d != nil && !d.cancelled && d.receiver != ended {
		return c.recvFrom(t, d)
	}
	return c.end(t)
}

// shows reports whether the application gets the messages of an attempt.
func (c *Call) shows(a *attempt) bool {
	return c.instead == nil && (a == c.committed || c.Over() && a == c.drain && !a.cancelled)
}

// received records the result of the application's RecvMsg on a.
func (c *Call) received(t *Task, a *attempt, err error) End {
	a.receiver = idle
	switch {
	case err != nil:
		a.receiver, a.deaf = ended, true
		if a.sender.free() {
			a.sender = ended
		}
		switch {
		case !a.claimed || !c.shows(a):
		case err == io.EOF:
			c.eof = true
		case c.refused == nil:
			c.later = err
		}
		return a.claimOnce(End{Err: err, Received: a == c.committed})
	case a.claimed && c.instead != nil: // the call has the error of another attempt
	case a.claimed:
		t.over = true
		if !c.set.ServerStreams {
			a.receiver, c.eof = ended, true
		}
	case !c.set.ServerStreams:
		a.receiver, t.reply = ended, a
		return a.claim(End{})
	case c.commit(a, decision.CommitMessage):
		a.again = a.heard
		c.heard(a)
		t.over = true
	}
	return c.claimEnd(a, false)
}

// brought records the result of a RecvMsg by the goroutine of a.
func (c *Call) brought(a *attempt, err error) End {
	a.receiver = idle
	switch {
	case err != nil:
		a.receiver, a.deaf = ended, true
		return a.claimOnce(End{Err: err})
	case a.claimed:
		a.brought = c.shows(a)
	case !c.set.ServerStreams:
		a.receiver, a.brought = ended, true
		return a.claim(End{})
	case c.commit(a, decision.CommitMessage):
		a.again = a.heard
		c.heard(a)
		a.brought = true
	}
	return c.claimEnd(a, false)
}

func (c *Call) askHeader(t *Task) Order {
	if c.Over() {
		return c.show()
	}
	if a := c.committed; a != nil {
		return c.headerOf(t, a)
	}
	for _, a := range c.running {
		if a.live() && (a.headed || a.asked && a.receiver == idle) && c.commit(a, decision.CommitHeaders) {
			return Order{Do: Return, Attempt: a.number}
		}
	}
	if a := c.newestAttempt(); a != nil && !c.set.Races {
		return c.headerOf(t, a)
	}
	return Order{Do: Wait}
}

// show returns an order to return, with the attempt that the call shows.
func (c *Call) show() Order {
	if a := c.committed; a != nil && !c.Over() {
		return Order{Do: Return, Attempt: a.number}
	}
	return Order{Do: Return, Attempt: c.Answer()}
}

// headerOf makes Header ask an attempt, in parallel with a RecvMsg that receives from it.
func (c *Call) headerOf(t *Task, a *attempt) Order {
	switch {
	case a.claimed:
		return Order{Do: Wait} // until the call is over, or resumed
	case a == c.committed && a.asked:
		return Order{Do: Return, Attempt: a.number}
	case a.asked:
		return Order{Do: Wait}
	case a.receiver.free():
		a.receiver, a.beside = app, Header
		o := t.order(GetHeader, a)
		o.Status = a != c.committed
		return o
	case a.receiver == app && a.beside == RecvMsg:
		o := t.order(GetHeader, a)
		o.Beside, t.beside = true, true
		return o
	default:
		return Order{Do: Wait}
	}
}

// gotHeader records the result of Header on a. The application's call asks again: headers commit the call, and so does their
// absence if the attempt's end is not known.
func (c *Call) gotHeader(t *Task, a *attempt, r Result) End {
	switch {
	case t.beside:
	case r.Err != nil && !a.claimed:
		a.receiver = ended
	default:
		a.receiver = idle
	}
	a.asked, a.headed = true, a.headed || r.Headers
	if r.Err != nil {
		return a.claimOnce(End{Err: r.Err})
	}
	return c.claimEnd(a, !r.Headers && t.Kind != Goroutine)
}

func (c *Call) askContext() Order {
	switch {
	case c.Over(), c.committed != nil && !c.committed.claimed:
		return c.show()
	case c.committed != nil:
		return Order{Do: Wait} // until the call is over, or resumed
	}
	for _, deaf := range []bool{false, true} {
		for _, a := range c.running {
			if a.live() && a.opened() && a.deaf == deaf && c.commit(a, decision.CommitContext) {
				return Order{Do: Return, Attempt: a.number}
			}
		}
	}
	return Order{Do: Wait}
}
