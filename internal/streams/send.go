// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"

	"github.com/stagger-go/stagger/internal/decision"
)

// Keeps reports whether what SendMsg sends is to be kept: another attempt may need it.
func (c *Call) Keeps() bool {
	return c.committed == nil && !c.over && !c.closed && !c.resumed
}

func (c *Call) askSendMsg(t *Task) Order {
	switch {
	case t.over:
		return Order{Do: Return, Returns: t.returns}
	case c.over:
		return c.sendsNoMore(t)
	case c.resumed:
		return Order{Do: Return} // it is late: the request for the rest has taken its place
	case !t.Kept:
		return c.sendOnce(t)
	case c.set.Races:
		return c.sendRacing(t)
	default:
		return c.sendKept(t)
	}
}

// sendsNoMore is what SendMsg returns when the call is over: the reason, if a message could not be sent, or no
// attempt could be opened; else RecvMsg says how the call has ended.
func (c *Call) sendsNoMore(t *Task) Order {
	switch a := c.answer; {
	case !c.usable, c.refused != nil && a == c.refused:
		return Order{Do: Return, Returns: Final}
	case a != nil && t.Kept && a.taken > t.index:
		return Order{Do: Return} // the answer has overtaken it
	default:
		return c.toldByRecvMsg()
	}
}

// toldByRecvMsg is what SendMsg returns when RecvMsg is to say why nothing more can be sent. If the application sends one
// message, SendMsg says nothing then, as in gRPC.
func (c *Call) toldByRecvMsg() Order {
	if c.set.ClientStreams {
		return Order{Do: Return, Returns: EOF}
	}
	return Order{Do: Return}
}

// send has SendMsg send its own message to an attempt.
func (c *Call) send(t *Task, a *attempt) Order {
	a.sender = app
	o := t.order(Send, a)
	o.Again = t.sent
	t.sent = true
	return o
}

// sendKept has SendMsg send its message to the attempt that runs, if that has everything before. Otherwise nothing
// need be waited for: the message is kept, and what is kept is bounded.
func (c *Call) sendKept(t *Task) Order {
	switch a := c.newest(); {
	case a == nil, a.taken > t.index:
		return Order{Do: Return}
	case a.deaf:
		return c.howEnded(t, a)
	case a.sender.free() && a.given == t.index && !t.sent:
		a.given++
		return c.send(t, a)
	default:
		return Order{Do: Return}
	}
}

// sendRacing has SendMsg send its message to the first attempt that can take it. Others send copies.
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
			return c.send(t, a)
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

// sendOnce has SendMsg send a message that is not kept to an attempt that has everything before. That is the only
// one from then on.
func (c *Call) sendOnce(t *Task) Order {
	var deaf *attempt
	for _, a := range c.running {
		switch {
		case !a.live():
		case a.deaf:
			deaf = a
		case a.sender.free() && !c.behind(a):
			return c.send(t, a)
		}
	}
	if deaf != nil {
		return c.howEnded(t, deaf)
	}
	return Order{Do: Wait}
}

// howEnded has SendMsg find out how an attempt has ended that takes nothing more. Without headers, OnFinish has
// said that. If there are headers, or nobody says anything, RecvMsg is to find out.
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

// sent takes in what has come of a message.
func (c *Call) sent(t *Task, a *attempt, r Result) End {
	a.sender = idle
	switch {
	case r.Unsendable:
		return c.unsendable(a, r.Err)
	case r.Err == io.EOF:
		a.sender, a.deaf = ended, true
	case r.Err != nil:
		return c.refuse(a, r.Err)
	case t.Kind == Goroutine, t.Kept:
		a.taken = max(a.taken, t.index+1)
	case a.finished && a != c.committed:
		a.sender, a.deaf = ended, true // an inner interceptor hides that it has ended
	case c.commit(a, c.why(t)):
		t.over = true
	}
	return c.end(a, false)
}

// why is the reason by which a message commits the call that was not kept.
func (c *Call) why(t *Task) decision.Commit {
	if t.Commit == decision.CommitNone && c.closed {
		return decision.CommitUnsendable // gRPC says so
	}
	return t.Commit
}

// refuse ends the call with an attempt to which a message could not be sent for a reason on this side, unless
// the call goes on with another.
func (c *Call) refuse(a *attempt, err error) End {
	a.sender, a.deaf = ended, true
	if !c.commit(a, decision.CommitUnsendable) || a.claimed {
		return c.end(a, false)
	}
	c.refused = a
	return a.claim(End{Err: err})
}

// unsendable ends the call with the server's last error, since a message cannot be sent again; or has it go on
// with another attempt that was sent everything.
func (c *Call) unsendable(a *attempt, err error) End {
	for _, other := range c.running {
		if other != a && other.live() && other.opened() && !other.deaf && !c.behind(other) {
			c.commit(other, decision.CommitUnsendable)
		}
	}
	if c.failure == nil || c.committed != nil { // of a, the application may have seen something
		return c.refuse(a, err)
	}
	e := c.refuse(a, c.failure)
	if e.Attempt != 0 {
		c.instead = c.failed
	}
	return e
}

func (c *Call) askCloseSend(t *Task) Order {
	if !t.sent {
		t.sent = true
		if c.closed || c.over {
			return Order{Do: Return}
		}
		c.closed, c.acts.Moved = true, true
	}
	for _, a := range c.running {
		if !c.over && a.live() && !a.deaf && !a.closed && a.sender.free() && a.given == c.kept {
			a.sender, a.closed = app, true
			return t.order(Close, a)
		}
	}
	return Order{Do: Return, Returns: t.returns}
}
