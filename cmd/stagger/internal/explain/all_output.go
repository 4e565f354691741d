// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

// overview is the answer to --all.
type overview struct {
	rows      []row
	unmatched []policy.Diagnostic
}

func (a overview) text(w io.Writer) error {
	p := terminal.StyleOf(w)
	var parts []string
	for rows := a.rows; len(rows) > 0; {
		n := slices.IndexFunc(rows, func(r row) bool { return r.service != rows[0].service })
		if n < 0 {
			n = len(rows)
		}
		parts = append(parts, service(rows[:n], p))
		rows = rows[n:]
	}
	if len(a.rows) == 0 {
		parts = append(parts, "no methods\n")
	}
	if len(a.unmatched) > 0 {
		var b strings.Builder
		for _, s := range a.unmatched {
			fmt.Fprintf(&b, "%s %s\n", p.Warning("warning:"), s)
		}
		parts = append(parts, b.String())
	}
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// service is the table of one.
func service(rows []row, p terminal.Style) string {
	t := report.Table{Columns: []string{"method", "retried or hedged", "attempts", "because", "budget", "entry"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.method, colour(p, r.Strategy), strconv.Itoa(r.Attempts), r.Why(), r.Budget, shortEntry(r)})
	}
	return p.Title(rows[0].service) + "\n" + terminal.Table(t, p, "") + "\n"
}

func colour(p terminal.Style, s explain.Strategy) string {
	switch s {
	case explain.Retried, explain.Hedged:
		return p.Success(string(s))
	case explain.Unsent, explain.Observed:
		return p.Warning(string(s))
	default:
		return string(s)
	}
}

// shortEntry names an entry beside its service.
func shortEntry(r row) string {
	if r.Policy == nil {
		return ""
	}
	switch n := r.Policy.Name(); r.Entry {
	case n.String():
		if n.Method == "" {
			return "the service's"
		}
		return "its own"
	case "{}":
		return "{}, for everything"
	default:
		return r.Entry
	}
}

// unmatchedJSON is a name that matches no method, in JSON.
type unmatchedJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field"`
	Name    string `json:"name"`
	Message string `json:"message"`
}

func (a overview) json(w io.Writer) error {
	whole := struct {
		Methods   []explain.MethodJSON `json:"methods"`
		Unmatched []unmatchedJSON      `json:"unmatched"`
	}{[]explain.MethodJSON{}, []unmatchedJSON{}}
	for _, r := range a.rows {
		path := "/" + r.service + "/" + r.method
		whole.Methods = append(whole.Methods, r.JSON(path))
	}
	for _, s := range a.unmatched {
		whole.Unmatched = append(whole.Unmatched, unmatchedJSON{s.File, s.Line, s.Column, s.Field, s.Value, s.Message})
	}
	return cli.WriteJSON(w, whole)
}
