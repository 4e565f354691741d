// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
)

// attempt is one attempt of a call, and to a backend the request that comes of it: the backend may go on
// with it when the client has turned away.
type attempt struct {
	call    *call // nil: it has ended, and nobody waits for it
	link    *link
	backend *backend
	answer  *answer
	fate    *answer // what the work on it comes to; nil: what comes of it
	below   *call   // that the request makes at the service below; nil while it makes none
	number  int32
	step    int32 // which of the service's calls that is
	waiting bool  // in the backend's queue
	tarries bool  // it waits for something else when a worker is done with it
	gaveUp  bool  // a call that it made below has given up after its retries
}

// answer is what a server says. There is one for each thing that can be said.
type answer struct {
	status  *status.Status
	err     error // of the status
	trailer metadata.MD
	local   bool // what a client makes of it that nobody waits for
}

func newAnswer(st *status.Status, trailer metadata.MD) *answer {
	return &answer{status: st, err: st.Err(), trailer: trailer}
}

func (a *answer) code() codes.Code { return a.status.Code() }

// The events of an attempt.
const (
	arrives what = iota
	served       // a worker is done with it
	ready        // what it waited for beside the worker is there
	answers      // the answer is back
)

// act implements [actor].
func (a *attempt) act(what what, _ uint32) {
	switch what {
	case arrives:
		a.backend.arrive(a)
	case served:
		a.backend.served(a)
	case ready:
		a.proceed()
	case answers:
		if a.call != nil {
			a.call.ended(a, a.answer)
		}
	}
}

// reply sends the answer to the client.
func (a *attempt) reply(ans *answer) {
	if ans.code() != codes.OK && a.gaveUp && a.backend.service.guards {
		ans = newAnswer(ans.status, stops)
	}
	a.answer = ans
	if delay, lost := a.link.passage(); !lost {
		a.link.world.in(delay, a, answers, 0)
	}
}

// proceed makes the calls of the service below, one after the other, and answers.
func (a *attempt) proceed() {
	if a.call == nil {
		return
	}
	links := a.backend.service.links
	if int(a.step) == len(links) {
		a.reply(fine)
		return
	}
	l := links[a.step]
	a.below = l.begin(l.clientOf(a.backend), a, a.call.deadline)
	a.below.first()
}

// returned takes in how a call below has ended.
func (a *attempt) returned(st *status.Status) {
	a.below = nil
	if st.Code() != codes.OK {
		a.reply(newAnswer(st, nil)) // a trailer is for the next above alone
		return
	}
	a.step++
	a.proceed()
}

// abandon lets the client turn away: the backend learns of it, and does with that what it is made for.
func (a *attempt) abandon() {
	a.call = nil
	if a.waiting && a.backend.service.drops {
		a.backend.leave()
	}
	if below := a.below; below != nil {
		a.below = nil
		below.stop(policy.ReasonCancelled, cancelled)
	}
}

var (
	fine      = newAnswer(status.New(codes.OK, ""), nil)
	late      = local(codes.DeadlineExceeded, "context deadline exceeded")
	cancelled = local(codes.Canceled, "context canceled")
)

func local(code codes.Code, text string) *answer {
	a := newAnswer(status.New(code, text), nil)
	a.local = true
	return a
}
