// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// attempt is one attempt of a call, and its request at the backend, which may go on with it after the client has given up.
type attempt struct {
	call    *call // nil: its client has given up
	link    *link
	backend *backend
	number  int
	client  int // the process that has sent it
	answer  *answer
	fails   *answer       // the response after the work on it; nil: it depends on the work
	below   *call         // the request's running call to the service below, or nil
	next    int           // index of the service's next call
	sent    bool          // it counts for the limit of its process
	since   time.Duration // when it came into the queue
	queued  bool          // in the backend's queue
	missed  bool          // its entry was not in the cache
	slow    *Distribution // extra wait when a worker is done with it; nil: none
	gaveUp  bool          // a call to a service below has given up
}

// The events of an attempt.
const (
	requestArrived eventKind = iota
	workDone                 // by a worker
	waitDone                 // the extra wait is over
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

// depart sends the request.
func (a *attempt) depart() {
	if delay, lost := a.link.transit(); !lost {
		a.link.world.after(delay, a, requestArrived, 0)
	}
}

// reply sends the response to the client.
func (a *attempt) reply(ans *answer) {
	if ans.status.Code() != codes.OK && a.gaveUp && a.backend.service.guards {
		ans = newAnswer(ans.status, pushbackStop)
	}
	a.answer = ans
	if delay, lost := a.link.transit(); !lost {
		a.link.world.after(delay, a, answerArrived, 0)
	}
}

// proceed makes the calls to the services below, one after the other, then answers.
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

// callBelowEnded continues after a call to a service below.
func (a *attempt) callBelowEnded(st *status.Status) {
	a.below = nil
	if st.Code() != codes.OK {
		a.reply(newAnswer(st, nil)) // trailers are not passed on
		return
	}
	a.next++
	a.proceed()
}

// abandon makes the client give up. The backend notices, and acts as configured.
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

// answer is a server's response, or the client's own error if it gives up.
type answer struct {
	status  *status.Status
	err     error // of the status
	trailer metadata.MD
	local   bool // made by the client
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
