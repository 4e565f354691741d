// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
)

// attempt is one attempt of a call, and to a backend the request that comes of it: the backend may go on
// with it when the client has turned away.
type attempt struct {
	call    *call
	backend *backend
	began   time.Duration
	permit  budget.Permit
	answer  *answer
	fate    *answer // what the work on it comes to; nil: what comes of it
	below   *call   // that the request makes at the service below; nil while it makes none
	number  int32
	step    int32 // which of the service's calls that is
	held    bool  // permit is there
	slow    bool  // it has used up its per-attempt timeout
	over    bool  // nobody waits for it any more
	waiting bool  // in the backend's queue
	tarries bool  // it waits for something else when a worker is done with it
	gaveUp  bool  // a call that it made below has given up after its retries
}

// answer is what a server says. There is one for each thing that can be said.
type answer struct {
	status  *status.Status
	trailer metadata.MD
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
func (a *attempt) act(e *event) {
	switch e.what {
	case arrives:
		a.backend.arrive(a)
	case served:
		a.backend.served(a)
	case ready:
		a.proceed()
	case answers:
		if !a.over {
			a.call.ended(a, a.answer)
		}
	}
}

// reply sends the answer to the client.
func (a *attempt) reply(ans *answer) {
	if ans.code() != codes.OK && a.gaveUp && a.backend.service.guards {
		ans = &answer{ans.status, stops}
	}
	a.answer = ans
	w := a.call.link.world
	if delay, lost := a.call.link.passage(); !lost {
		w.in(delay, a, answers, 0)
	}
}

// proceed makes the calls of the service below, one after the other, and answers.
func (a *attempt) proceed() {
	if a.over {
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
func (a *attempt) returned(ans *answer) {
	a.below = nil
	if ans.code() != codes.OK {
		a.reply(&answer{status: ans.status}) // a trailer is for the next above alone
		return
	}
	a.step++
	a.proceed()
}

// abandon lets the client turn away: the backend learns of it, and does with that what it is made for.
func (a *attempt) abandon() {
	a.over = true
	if a.waiting && a.backend.service.drops {
		a.backend.leave()
	}
	if below := a.below; below != nil {
		a.below = nil
		below.cancel()
	}
}

var (
	fine      = &answer{status: status.New(codes.OK, "")}
	late      = &answer{status: status.New(codes.DeadlineExceeded, "context deadline exceeded")}
	cancelled = &answer{status: status.New(codes.Canceled, "context canceled")}
)
