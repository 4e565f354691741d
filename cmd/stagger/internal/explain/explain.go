// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/effect"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/attempts"
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

// chances are what the random numbers of an explanation are: one for each attempt that fails.
type chances [interceptor.DefaultMaxAttempts]float64

// explain lets every attempt fail in the same way, in no time.
func explain(set *policy.Set, known api.API, q question, drawn chances) answer {
	a := answer{question: q, Effect: effect.Of(set, known, q.method), limit: q.deadline}
	if a.Policy == nil {
		return a
	}
	if timeout := a.Policy.Spec().Timeout; timeout > 0 && (a.limit == 0 || timeout < a.limit) {
		a.limit = timeout
	}
	a.events = a.play(a.limit, drawn)
	for i := range a.events {
		e := &a.events[i]
		if !e.decision.Retry && e.decision.Reason != policy.ReasonDeadlineTooClose {
			continue
		}
		wait := func(chance float64) time.Duration { // a longer wait might not fit before the deadline
			other := drawn
			other[i] = chance
			return a.play(0, other)[i].decision.Delay
		}
		e.waits, e.least, e.longest = true, wait(0), wait(almostOne)
	}
	return a
}

// almostOne is the largest chance.
const almostOne = 1 - 1.0/(1<<53)

// play drives the engine of calls through all attempts; a limit of 0 is none.
func (a *answer) play(limit time.Duration, drawn chances) []event {
	var (
		call   attempts.Call
		events []event
		at     time.Duration
	)
	now := func() attempts.Now {
		return attempts.Now{At: at, Wall: time.Unix(0, 0).Add(at), Chance: drawn[min(len(events), len(drawn)-1)]}
	}
	failed := attempts.Result{Outcome: policy.Outcome{Status: status.New(a.code, "")}}
	failed.Err = failed.Status.Err()
	if a.pushback != "" {
		failed.Trailer = metadata.Pairs(policy.PushbackTrailer, a.pushback)
	}
	settings := attempts.Settings{
		Policy: a.Policy, MaxAttempts: interceptor.DefaultMaxAttempts, Deadline: attempts.Never,
		Facts: facts{a.Safe, a.inRetry}, Budget: budget.Unlimited, Slots: slots{},
	}
	if limit > 0 {
		settings.Deadline, settings.Wall = limit, time.Unix(0, 0).Add(limit)
	}
	for step := call.Start(settings, now()); !step.Over; {
		if step.Send == 0 {
			at = step.Wake
			step = call.Wake(now())
			continue
		}
		step = call.Ended(step.Send, failed, now())
		events = append(events, event{at: at, decision: step.Decision})
	}
	return events
}

// facts implements [attempts.Facts].
type facts struct{ safe, inRetry bool }

func (f facts) Safe() bool       { return f.safe }
func (f facts) InRetry() bool    { return f.inRetry }
func (facts) Off() policy.Reason { return "" }

// slots implements [attempts.Slots] without a limit.
type slots struct{}

func (slots) Enter() bool { return true }
func (slots) Leave()      {}
