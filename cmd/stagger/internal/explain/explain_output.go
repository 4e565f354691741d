// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

func write(w io.Writer, a answer) error {
	_, err := io.WriteString(w, text(a, terminal.StyleOf(w)))
	return err
}

func text(a answer, p terminal.Style) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Title(a.method))
	if a.Policy == nil {
		fmt.Fprintln(&b, "  "+a.Because+": one attempt")
		return b.String()
	}
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fact("entry", "%s", entry(a))
	fact("attempts", "%s", attemptsOf(a.Policy))
	fact("safe", "%s", safety(a))
	if a.Budget != "" {
		fact("budget", "%s", a.Budget)
	}
	if a.limit > 0 {
		fact("deadline", "%v for the whole call", a.limit)
	}
	fmt.Fprintf(&b, "\nIf every attempt fails with %s%s, at once:\n\n%s\n", policy.CodeName(a.code), pushback(a), timeline(a, p))
	last := a.events[len(a.events)-1].decision
	fmt.Fprintf(&b, "\nThe questions after attempt %d:\n\n%s\n", len(a.events), questions(last, p))
	return b.String()
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

func timeline(a answer, p terminal.Style) string {
	t := report.Table{Columns: []string{"attempt", "at", "then", "wait", "between", "reason"}}
	for i, e := range a.events {
		row := []string{strconv.Itoa(i + 1), short(e.at), p.Error("no other attempt"), "", "", string(e.decision.Reason)}
		if e.decision.Retry {
			row[2], row[3] = p.Success("another attempt"), short(e.decision.Delay)
		}
		if e.waits {
			row[4] = short(e.least) + " and " + short(e.longest)
		}
		t.Rows = append(t.Rows, row)
	}
	return terminal.Table(t, p, "")
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
