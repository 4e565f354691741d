// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

func text(a explain.Answer, p terminal.Style) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Title(a.Method))
	if a.Policy == nil {
		fmt.Fprintln(&b, "  "+a.Because+": one attempt")
		return b.String()
	}
	for _, f := range a.Facts() {
		fmt.Fprintf(&b, "  %-9s %s\n", f.Name, f.Value)
	}
	fmt.Fprintf(&b, "\nIf %s:\n\n", a.Scenario())
	if len(a.Events) > 0 {
		fmt.Fprintln(&b, timeline(a, p))
	}
	fmt.Fprintln(&b, a.Outcome())
	if last := a.Refusal(); last != nil {
		fmt.Fprintf(&b, "\nThe questions after attempt %d:\n\n%s\n", last.Attempt, questions(last.Decision, p))
	}
	return b.String()
}

// timeline returns the table of attempts, with the time of sending if attempts take time.
func timeline(a explain.Answer, p terminal.Style) string {
	timed := slices.ContainsFunc(a.Events, func(e explain.Event) bool { return e.At != e.Sent })
	t := report.Table{Columns: []string{"attempt", "at", "then", "wait", "between", "reason"}}
	if timed {
		t.Columns = slices.Insert(t.Columns, 1, "sent", "is")
	}
	for _, e := range a.Events {
		row := []string{strconv.Itoa(e.Attempt), explain.Short(e.At), then(e, p), "", e.Between(), string(e.Decision.Reason)}
		if e.Decision.Retry || e.Decision.Shadow() {
			row[3] = explain.Short(e.Decision.Delay)
		}
		if timed {
			is := codename.Of(a.Code)
			if e.Slow {
				is = "slow"
			}
			row = slices.Insert(row, 1, explain.Short(e.Sent), is)
		}
		t.Rows = append(t.Rows, row)
	}
	return terminal.Table(t, p, "")
}

// then returns the consequence of an event.
func then(e explain.Event, p terminal.Style) string {
	if e.Decision.Retry {
		return p.Success(e.Then())
	}
	if e.Decision.Shadow() {
		return p.Warning(e.Then())
	}
	return p.Error(e.Then())
}

// questions returns the checks, and their results after the last attempt.
func questions(d decision.Decision, p terminal.Style) string {
	var b strings.Builder
	said := "yes"
	for _, step := range decision.Steps() {
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

func showMeaning(w io.Writer, m explain.Meaning) error {
	lines := []string{terminal.StyleOf(w).Title(string(m.Reason))}
	if m.Question != "" {
		lines = append(lines, "  question  "+m.Question+" No.")
	}
	for _, line := range [][2]string{{"means", m.Means}, {"look at", m.LookAt}, {"change", m.Change}, {"do not", m.DoNot}} {
		if line[1] != "" {
			lines = append(lines, fmt.Sprintf("  %-8s  %s", line[0], line[1]))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func reasonNames() []string {
	reasons := decision.Reasons()
	list := make([]string, 0, len(reasons))
	for _, r := range reasons {
		list = append(list, string(r))
	}
	return list
}
