// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

func text(a answer, p terminal.Style) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Title(a.method))
	if a.Policy == nil {
		fmt.Fprintln(&b, "  "+a.Because+": one attempt")
		return b.String()
	}
	fact := func(name, value string) { fmt.Fprintf(&b, "  %-9s %s\n", name, value) }
	fact("entry", entry(a))
	fact("attempts", attemptsOf(a.Policy))
	fact("safe", safety(a))
	for _, f := range settings(a.Policy) {
		fact(f.name, f.value)
	}
	if a.Budget != "" {
		fact("budget", a.Budget+emptied(a))
	}
	if a.limit > 0 {
		fact("deadline", a.limit.String()+" for the whole call")
	}
	fmt.Fprintf(&b, "\nIf %s:\n\n", scenario(a))
	if len(a.events) > 0 {
		fmt.Fprintln(&b, timeline(a, p))
	}
	fmt.Fprintln(&b, outcome(a))
	if last := a.last(); last != nil {
		fmt.Fprintf(&b, "\nThe questions after attempt %d:\n\n%s\n", last.attempt, questions(last.decision, p))
	}
	return b.String()
}

// last is the last decision, if that was a no.
func (a *answer) last() *event {
	if n := len(a.events); n > 0 && !a.events[n-1].decision.Retry {
		return &a.events[n-1]
	}
	return nil
}

// scenario is what every attempt meets.
func scenario(a answer) string {
	var b strings.Builder
	switch {
	case a.hang:
		b.WriteString("no attempt is ever answered")
	case a.latency > 0:
		fmt.Fprintf(&b, "every attempt fails with %s%s, after %v", policy.CodeName(a.code), pushback(a), a.latency)
	default:
		fmt.Fprintf(&b, "every attempt fails with %s%s, at once", policy.CodeName(a.code), pushback(a))
	}
	if a.breakerOpen {
		b.WriteString(", and the circuit opens after the first")
	}
	return b.String()
}

// outcome is how the call ends.
func outcome(a answer) string {
	if a.never {
		return "The call does not end: it has no deadline, and nobody answers."
	}
	n := strconv.Itoa(a.end.Attempts) + " attempts"
	if a.end.Attempts == 1 {
		n = "1 attempt"
	}
	if a.end.Hedges > 0 {
		n += fmt.Sprintf(", %d of them hedges", a.end.Hedges)
	}
	return fmt.Sprintf("The call ends after %s with %s: %s (%s).", short(a.at), a.endCode(), a.end.Reason, n)
}

// endCode is the code that the caller gets.
func (a *answer) endCode() string {
	if a.end.Err == nil { // of a call that was stopped, it is the context's
		return policy.CodeName(codes.DeadlineExceeded)
	}
	return policy.CodeName(status.Code(a.end.Err))
}

func emptied(a answer) string {
	if a.budgetEmpty {
		return ", which is empty"
	}
	return ""
}

func pushback(a answer) string {
	if a.pushback == "" {
		return ""
	}
	return " and " + policy.PushbackTrailer + ": " + a.pushback
}

func entry(a answer) string {
	n := a.Policy.Name()
	switch {
	case a.Entry == "{}":
		return "{}, which names everything"
	case a.Entry != n.String():
		return a.Entry // it comes with the API
	case n.Method != "":
		return a.Entry + ", which names the method"
	default:
		return a.Entry + ", which names its service"
	}
}

func attemptsOf(p *policy.Policy) string {
	n := p.MaxAttempts()
	switch {
	case n == 1:
		return "1: the entry has no retryPolicy or hedgingPolicy"
	case n > interceptor.DefaultMaxAttempts:
		return fmt.Sprintf("%d, cut to %d unless interceptor.WithMaxAttempts allows more", n, interceptor.DefaultMaxAttempts)
	case p.Hedge() != nil:
		return fmt.Sprintf("%d, beside each other (hedging)", n)
	default:
		return strconv.Itoa(n)
	}
}

func safety(a answer) string {
	if a.Safe {
		return "yes: " + a.Because
	}
	return "no: " + a.Because
}

// timeline has the time of sending apart if attempts take time.
func timeline(a answer, p terminal.Style) string {
	timed := slices.ContainsFunc(a.events, func(e event) bool { return e.at != e.sent })
	t := report.Table{Columns: []string{"attempt", "at", "then", "wait", "between", "reason"}}
	if timed {
		t.Columns = slices.Insert(t.Columns, 1, "sent", "is")
	}
	for _, e := range a.events {
		row := []string{strconv.Itoa(e.attempt), short(e.at), then(e, p), "", "", string(e.decision.Reason)}
		if e.decision.Retry {
			row[3] = short(e.decision.Delay)
		}
		if e.waits {
			row[4] = short(e.least) + " and " + short(e.longest)
		}
		if timed {
			is := policy.CodeName(a.code)
			if e.slow {
				is = "slow"
			}
			row = slices.Insert(row, 1, short(e.sent), is)
		}
		t.Rows = append(t.Rows, row)
	}
	return terminal.Table(t, p, "")
}

// then is what follows an event.
func then(e event, p terminal.Style) string {
	switch {
	case e.decision.Retry && e.slow && e.decision.Reason == policy.ReasonHedge:
		return p.Success("another attempt beside it")
	case e.decision.Retry && e.slow:
		return p.Success("another attempt in its place")
	case e.decision.Retry:
		return p.Success("another attempt")
	case e.slow:
		return p.Error("it goes on alone")
	default:
		return p.Error("no other attempt")
	}
}

// questions are those of the pipeline, and the answers after the last attempt.
func questions(d policy.Decision, p terminal.Style) string {
	var b strings.Builder
	said := "yes"
	for _, step := range policy.Steps() {
		line := fmt.Sprintf("  %-9s  %-75s %s", said, step.Question, step.No)
		switch {
		case step.No == d.Reason:
			line = p.Error(fmt.Sprintf("  %-9s  %-75s %s", "NO", step.Question, step.No))
			said = "not asked"
		case said != "yes":
			line = p.Faint(line)
		}
		fmt.Fprintln(&b, line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func short(d time.Duration) string { return d.Round(time.Millisecond / 10).String() }
