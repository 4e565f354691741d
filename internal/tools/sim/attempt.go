// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// attempt is one attempt of a call, and to a backend the request that comes of it: the backend may go on with
// it when the client has turned away.
type attempt struct {
	call    *call // nil: nobody waits for it any more
	link    *link
	backend *backend
	number  int
	answer  *answer
	fails   *answer       // what the work on it comes to; nil: what comes of it
	below   *call         // that the request makes at the service below; nil while it makes none
	next    int           // of the service's calls, which one follows
	queued  bool          // in the backend's queue
	slow    *Distribution // how long it waits for something else when a worker is done with it; nil: it does not
	gaveUp  bool          // a call that it made below has given up after its retries

	utilization float64 // that the backend reports with the answer; 0: it does not
}

// The events of an attempt.
const (
	requestArrived eventKind = iota
	workDone                 // by a worker
	waitDone                 // for something beside the worker
	answerArrived
)

// handle implements [handler].
func (a *attempt) handle(kind eventKind, _ uint32) {
	switch kind {
	case requestArrived:
		a.backend.arrive(a)
	case workDone:
		a.backend.workDone(a)
	case waitDone:
		a.proceed()
	case answerArrived:
		if a.call != nil {
			a.call.endAttempt(a, a.answer)
		}
	}
}

// reply sends the answer to the client.
func (a *attempt) reply(ans *answer) {
	if ans.status.Code() != codes.OK && a.gaveUp && a.backend.service.guards {
		ans = newAnswer(ans.status, pushbackStop)
	}
	a.answer = ans
	if b := a.backend; b.service.spec.Reports {
		a.utilization = Ratio(b.busy, b.faults.workers)
	}
	if delay, lost := a.link.transit(); !lost {
		a.link.world.after(delay, a, answerArrived, 0)
	}
}

// proceed makes the calls of the service below, one after the other, and answers.
func (a *attempt) proceed() {
	if a.call == nil {
		return
	}
	links := a.backend.service.links
	if a.next == len(links) {
		a.reply(answerOK)
		return
	}
	l := links[a.next]
	a.below = l.newCall(l.clientOf(a.backend), a, a.call.deadline)
	a.below.startCall()
}

// callBelowEnded goes on after a call of the service below.
func (a *attempt) callBelowEnded(st *status.Status) {
	a.below = nil
	if st.Code() != codes.OK {
		a.reply(newAnswer(st, nil)) // a trailer is for the next above alone
		return
	}
	a.next++
	a.proceed()
}

// abandon lets the client turn away: the backend learns of it, and does with that what it is made for.
func (a *attempt) abandon() {
	a.call = nil
	if a.queued && a.backend.service.drops {
		a.backend.dropAbandoned()
	}
	if below := a.below; below != nil {
		a.below = nil
		below.stopCall(policy.ReasonCancelled, answerCancelled)
	}
}

// answer is what a server says, or what a client makes of it that nobody waits.
type answer struct {
	status  *status.Status
	err     error // of the status
	trailer metadata.MD
	local   bool // no server says it
}

func newAnswer(st *status.Status, trailer metadata.MD) *answer {
	return &answer{status: st, err: st.Err(), trailer: trailer}
}

var (
	answerOK        = newAnswer(status.New(codes.OK, ""), nil)
	answerLate      = localAnswer(codes.DeadlineExceeded, "context deadline exceeded")
	answerCancelled = localAnswer(codes.Canceled, "context canceled")
)

func localAnswer(code codes.Code, text string) *answer {
	a := newAnswer(status.New(code, text), nil)
	a.local = true
	return a
}

// pushbackStop is the trailer that forbids a retry.
var pushbackStop = metadata.Pairs(decision.PushbackTrailer, "-1")
