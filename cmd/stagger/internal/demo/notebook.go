// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// moment is one line of a story.
type moment struct {
	at      time.Time
	attempt int
	what    string
	then    string
	why     string
}

// notebook takes down what the Retrier says of one call.
type notebook struct {
	begin   time.Time // of the call
	moments []moment
}

// observer needs no lock: the Retrier tells of one call one thing at a time.
func (n *notebook) observer() interceptor.Observer {
	return interceptor.Observer{
		Attempt:  n.attempt,
		Decision: n.decision,
		Call:     n.call,
		Warning:  func(policy.Diagnostic) {},
	}
}

func (n *notebook) attempt(_ context.Context, e interceptor.AttemptEvent) {
	m := moment{at: e.Start.Add(e.Elapsed), attempt: e.Number, what: policy.CodeName(e.Code)}
	if e.Place == interceptor.PlaceAbandoned || e.Place == interceptor.PlaceCancelled {
		m.what = "given up"
	}
	n.moments = append(n.moments, m)
}

// decision completes the line of its attempt, unless that still runs.
func (n *notebook) decision(_ context.Context, e interceptor.DecisionEvent) {
	if e.TimedOut {
		n.moments = append(n.moments, moment{at: time.Now(), attempt: e.Attempt, what: "slow"})
	}
	m := &n.moments[len(n.moments)-1]
	m.then, m.why = "no other attempt", string(e.Decision.Reason)
	if e.Decision.Retry {
		m.then = fmt.Sprintf("again in %d ms", e.Decision.Delay.Milliseconds())
		m.why = "backoff"
		if source := e.Decision.Pushback.Source; source != "" {
			m.why = "the server's word: " + source
		}
	}
}

func (n *notebook) call(_ context.Context, e interceptor.CallEvent) {
	n.moments = append(n.moments, moment{
		at: e.Start.Add(e.Elapsed), what: "call ends: " + policy.CodeName(e.Code),
		then: fmt.Sprintf("attempts: %d", e.Attempts), why: string(e.Reason),
	})
	n.begin = e.Start
}

func printStory(out screen, title string, n *notebook) {
	t := newTable(out, title)
	t.AppendHeader(table.Row{"ms", "attempt", "outcome", "then", "reason"})
	for _, m := range n.moments {
		attempt := ""
		if m.attempt > 0 {
			attempt = strconv.Itoa(m.attempt)
		}
		t.AppendRow(table.Row{m.at.Sub(n.begin).Milliseconds(), attempt, m.what, m.then, m.why})
	}
	out.printf("\n%s\n", t.Render())
}
