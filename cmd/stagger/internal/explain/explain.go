// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/effect"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// question is what is to be explained.
type question struct {
	method   string
	code     codes.Code
	pushback string
	deadline time.Duration
	inRetry  bool
}

// answer is the explanation.
type answer struct {
	question
	effect.Effect

	limit  time.Duration // of the whole call; 0: none
	events []event
}

// event is an attempt that has failed, and what follows.
type event struct {
	at             time.Duration // since the call's start
	decision       policy.Decision
	waits          bool          // or would, if there were time
	least, longest time.Duration // that the wait could have been
}

// willing are gates that say yes to everything.
type willing struct{}

func (willing) Open() bool                             { return false }
func (willing) Enter() bool                            { return true }
func (willing) Leave()                                 {}
func (willing) Fail()                                  {}
func (willing) Withdraw(*policy.Outcome, float64) bool { return true }

// explain lets every attempt fail in the same way, in no time.
func explain(set *policy.Set, known api.API, q question, random func() float64) answer {
	a := answer{question: q, Effect: effect.Of(set, known, q.method), limit: q.deadline}
	p := a.Policy
	if p == nil {
		return a
	}
	if timeout := p.Spec().Timeout; timeout > 0 && (a.limit == 0 || timeout < a.limit) {
		a.limit = timeout
	}
	out := policy.Outcome{Status: status.New(q.code, "")}
	if q.pushback != "" {
		out.Trailer = metadata.Pairs(policy.PushbackTrailer, q.pushback)
	}
	start := time.Unix(0, 0)
	call := policy.Call{Attempts: 1, MaxAttempts: interceptor.DefaultMaxAttempts, Safe: a.Safe, InRetry: q.inRetry}
	if a.limit > 0 {
		call.Deadline = start.Add(a.limit)
	}
	for now := time.Duration(0); ; {
		decide := func(c policy.Call, r float64) policy.Decision {
			return p.Decide(&c, &out, willing{}, start.Add(now), r)
		}
		e := event{at: now, decision: decide(call, random())}
		if e.decision.Retry || e.decision.Reason == policy.ReasonDeadlineTooClose {
			free := call // a longer wait might not fit before the deadline
			free.Deadline = time.Time{}
			e.waits, e.least, e.longest = true, decide(free, 0).Delay, decide(free, almostOne).Delay
		}
		a.events = append(a.events, e)
		if !e.decision.Retry {
			return a
		}
		call.Sent(e.decision)
		now += e.decision.Delay
	}
}

// almostOne is the largest chance.
const almostOne = 1 - 1.0/(1<<53)
