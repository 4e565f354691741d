// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/stagger-go/stagger/policy"
)

func write(w io.Writer, a answer) error {
	_, err := io.WriteString(w, text(a))
	return err
}

func text(a answer) string {
	var b strings.Builder
	fmt.Fprintln(&b, a.method)
	if a.policy == nil {
		fmt.Fprintln(&b, "  no entry names it, its service or everything: one attempt")
		return b.String()
	}
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fact("entry", "%s", entry(a.policy))
	fact("attempts", "%s", attempts(a.policy))
	fact("safe", "%s", safety(a))
	fact("budget", "%s", budget(a.policy))
	if a.limit > 0 {
		fact("deadline", "%v for the whole call", a.limit)
	}
	fmt.Fprintf(&b, "\nIf every attempt fails with %s%s, at once:\n\n%s\n", policy.CodeName(a.code), pushback(a), timeline(a))
	last := a.events[len(a.events)-1].decision
	fmt.Fprintf(&b, "\nThe questions after attempt %d:\n\n%s\n", len(a.events), questions(last))
	return b.String()
}

func pushback(a answer) string {
	if a.pushback == "" {
		return ""
	}
	return " and " + policy.PushbackTrailer + ": " + a.pushback
}

func entry(p *policy.Policy) string {
	switch n := p.Name(); {
	case n.Method != "":
		return n.String() + ", which names the method"
	case n.Service != "":
		return n.String() + ", which names its service"
	default:
		return "{}, which names everything"
	}
}

func attempts(p *policy.Policy) string {
	n := p.MaxAttempts()
	switch {
	case n == 1:
		return "1: the entry has no retryPolicy"
	case n > maxAttempts:
		return fmt.Sprintf("%d, cut to %d unless interceptor.WithMaxAttempts allows more", n, maxAttempts)
	case p.Hedge() != nil:
		return fmt.Sprintf("%d, beside each other (hedging)", n)
	default:
		return strconv.Itoa(n)
	}
}

func safety(a answer) string {
	switch {
	case !a.safe:
		return "no: nobody declares it safe to repeat"
	case a.policy.IdempotencyKey() != "":
		return "yes: it sends an idempotency key, " + a.policy.IdempotencyKey()
	case a.policy.Spec().Idempotency == policy.Assume && a.policy.Name().Method != "":
		return "yes: the entry names the method"
	case a.policy.Spec().Idempotency == policy.Assume:
		return "yes: idempotency is ASSUME"
	default:
		return "yes: its descriptor says so"
	}
}

func budget(p *policy.Policy) string {
	switch name := p.Budget(); name {
	case "":
		return "the default one"
	case policy.NoBudget:
		return "none: no limit"
	default:
		return name
	}
}

func timeline(a answer) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"attempt", "at", "then", "wait", "between", "reason"})
	for i, e := range a.events {
		row := table.Row{i + 1, short(e.at), "no other attempt", "", "", string(e.decision.Reason)}
		if e.decision.Retry {
			row[2], row[3], row[4] = "another attempt", short(e.decision.Delay), short(e.least)+" and "+short(e.longest)
		}
		t.AppendRow(row)
	}
	return t.Render()
}

// questions are those of the pipeline, and the answers after the last attempt.
func questions(d policy.Decision) string {
	var b strings.Builder
	mark := "yes"
	for _, step := range policy.Steps() {
		said := mark
		if step.No == d.Reason {
			said, mark = "NO", "not asked"
		}
		fmt.Fprintf(&b, "  %-9s  %-75s %s\n", said, step.Question, step.No)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func short(d time.Duration) string { return d.Round(time.Millisecond / 10).String() }
