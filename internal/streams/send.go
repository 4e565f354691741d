// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"

	"github.com/stagger-go/stagger/internal/decision"
)

// Keeps reports whether SendMsg must keep its message, because another attempt may need it.
func (c *Call) Keeps() bool {
	return c.committed == nil && !c.Over() && !c.closed && !c.resumed
}

func (c *Call) askSendMsg(t *Task) Order {
	switch {
	case t.over:
		return Order{Do: Return, Returns: t.returns}
	case c.Over():
		return c.sendsNoMore(t)
	case c.resumed:
		return Order{Do: Return} // too late: the resume request has replaced it
	case !t.Kept:
		return c.sendOnce(t)
	case c.set.Races:
		return c.sendRacing(t)
	default:
		return c.sendKept(t)
	}
}

// sendsNoMore returns the result of SendMsg after the end of the call: the reason, if a message could not be sent or no attempt
// could be opened. Otherwise RecvMsg returns how the call has ended.
func (c *Call) sendsNoMore(t *Task) Order {
	switch a := c.answer; {
	case !c.usable, c.refused != nil && a == c.refused:
		return c.end(t)
	case a != nil && t.Kept && a.taken > t.index:
		return Order{Do: Return} // the attempt that answered has this message
	default:
		return c.toldByRecvMsg()
	}
}

// toldByRecvMsg returns the result of SendMsg when RecvMsg will return the error. If the application sends only one message,
// that result is nil, as in gRPC.
func (c *Call) toldByRecvMsg() Order {
	if c.set.ClientStreams {
		return Order{Do: Return, Returns: EOF}
	}
	return Order{Do: Return}
}

// orderSend makes SendMsg send its message to an attempt.
func (c *Call) orderSend(t *Task, a *attempt) Order {
	a.sender = app
	o := t.order(Send, a)
	o.Again = t.sent
	t.sent = true
	return o
}

// sendKept makes SendMsg send its message to the running attempt, if that has all messages before it. Otherwise SendMsg returns
// without waiting: the message is kept, and the buffer is bounded.
func (c *Call) sendKept(t *Task) Order {
	switch a := c.newestAttempt(); {
	case a == nil, a.taken > t.index:
		return Order{Do: Return}
	case a.deaf:
		return c.howEnded(t, a)
	case a.sender.free() && a.given == t.index && !t.sent:
		a.given++
		return c.orderSend(t, a)
	default:
		return Order{Do: Return}
	}
}

// sendRacing makes SendMsg send its message to the first attempt that can take it. Goroutines send copies to the others.
func (c *Call) sendRacing(t *Task) Order {
	running := false
	for _, a := range c.running {
		switch {
		case !a.live():
			continue
		case a.taken > t.index, a.deaf:
			return Order{Do: Return}
		case a.sender.free() && a.given == t.index && !t.sent:
			a.given++
			c.offered, c.acts.Moved = 0, true
			return c.orderSend(t, a)
		}
		running = true
	}
	if running {
		if !t.sent {
			c.offered = t.index + 1
		}
		return Order{Do: Wait}
	}
	return Order{Do: Return}
}

// sendOnce makes SendMsg send a message that isn't kept, to an attempt that has all messages before it. The call then commits
// to this attempt.
func (c *Call) sendOnce(t *Task) Order {
	var deaf *attempt
	for _, a := range c.running {
		switch {
		case !a.live():
		case a.deaf:
			deaf = a
		case a.sender.free() && !c.behind(a):
			return c.orderSend(t, a)
		}
	}
	if deaf != nil {
		return c.howEnded(t, deaf)
	}
	return Order{Do: Wait}
}

// howEnded makes SendMsg find out how an attempt has ended to which SendMsg fails. Without headers, OnFinish has reported that.
// If there are headers, or the end is unknown, RecvMsg finds out.
func (c *Call) howEnded(t *Task, a *attempt) Order {
	switch {
	case a == c.committed:
		return c.toldByRecvMsg()
	case a.receiver.held() && t.Kept:
		return Order{Do: Return}
	case a.receiver.held():
		return Order{Do: Wait}
	case !a.asked:
		a.receiver, a.beside = app, SendMsg
		o := t.order(GetHeader, a)
		o.Status = true
		return o
	case c.commit(a, decision.CommitHeaders):
		return c.toldByRecvMsg()
	default:
		return Order{Do: Wait}
	}
}

// sent records the result of SendMsg on a.
func (c *Call) sent(t *Task, a *attempt, r Result) End {
	a.sender = idle
	switch {
	case r.Unsendable:
		return c.unsendable(a, r.Err)
	case r.Err == io.EOF:
		a.sender, a.deaf = ended, true
	case r.Err != nil:
		return c.endUnsendable(a, r.Err)
	case t.Kind == Goroutine, t.Kept:
		a.take(t)
	case a.finished && a != c.committed:
		a.sender, a.deaf = ended, true // an inner interceptor hides the end
	case c.commit(a, c.why(t)):
		t.over = true
	}
	return c.claimEnd(a, false)
}

// take records that a has a message, and frees its sender.
func (a *attempt) take(t *Task) { a.sender, a.taken = idle, max(a.taken, t.index+1) }

// why returns the reason for which an unkept message commits the call.
func (c *Call) why(t *Task) decision.Commit {
	if t.Commit == decision.CommitNone && c.closed {
		return decision.CommitUnsendable // as gRPC says
	}
	return t.Commit
}

// endUnsendable ends the call because a message could not be sent to a for a local reason, unless the call continues with another
// attempt.
func (c *Call) endUnsendable(a *attempt, err error) End {
	a.sender, a.deaf = ended, true
	if !c.commit(a, decision.CommitUnsendable) || a.claimed {
		return c.claimEnd(a, false)
	}
	c.refused = a
	return a.claim(End{Err: err})
}

// unsendable ends the call with the server's last error because a message could not be resent, or commits the call to another
// attempt that has all messages.
func (c *Call) unsendable(a *attempt, err error) End {
	for _, other := range c.running {
		if other != a && other.live() && other.opened() && !other.deaf && !c.behind(other) {
			c.commit(other, decision.CommitUnsendable)
		}
	}
	if c.failure == nil || c.committed != nil { // the application may have seen part of an attempt
		return c.endUnsendable(a, err)
	}
	e := c.endUnsendable(a, c.failure)
	if c.refused == a { // else a was already replaced, and the call continues
		c.instead = c.failed
	}
	return e
}

func (c *Call) askCloseSend(t *Task) Order {
	if !t.sent {
		t.sent = true
		if c.closed || c.Over() {
			return Order{Do: Return}
		}
		c.closed, c.acts.Moved = true, true
	}
	for _, a := range c.running {
		if !c.Over() && a.live() && !a.deaf && !a.closed && a.sender.free() && a.given == c.kept {
			a.sender, a.closed = app, true
			return t.order(Close, a)
		}
	}
	return Order{Do: Return, Returns: t.returns}
}
