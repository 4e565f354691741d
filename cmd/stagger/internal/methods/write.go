// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/stagger-go/stagger/cmd/stagger/internal/pen"
	"github.com/stagger-go/stagger/cmd/stagger/internal/verdict"
	"github.com/stagger-go/stagger/policy"
)

// answer is what the command says.
type answer struct {
	rows   []row
	strays []policy.Problem
}

func (a answer) text(w io.Writer) error {
	p := pen.For(w)
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
	if len(a.strays) > 0 {
		var b strings.Builder
		for _, s := range a.strays {
			fmt.Fprintf(&b, "%s %s\n", p.Doubtful("warning:"), s)
		}
		parts = append(parts, b.String())
	}
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// service is the table of one.
func service(rows []row, p pen.Pen) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"method", "retried or hedged", "attempts", "because", "budget", "entry"})
	for _, r := range rows {
		t.AppendRow(table.Row{r.method, colour(p, r.Deed), r.Attempts, because(r.Verdict), r.Budget, short(r)})
	}
	return p.Title(rows[0].service) + "\n" + t.Render() + "\n"
}

func colour(p pen.Pen, d verdict.Deed) string {
	switch d {
	case verdict.Retried, verdict.Hedged:
		return p.Good(string(d))
	case verdict.Unsent:
		return p.Doubtful(string(d))
	default:
		return string(d)
	}
}

// because is why: who declares it safe, unless there is nothing to repeat.
func because(v verdict.Verdict) string {
	if v.Policy != nil && v.Deed == verdict.Once {
		return "the entry has no retryPolicy or hedgingPolicy"
	}
	return v.Because
}

// short names an entry beside its service.
func short(r row) string {
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

// inJSON is a row in JSON.
type inJSON struct {
	Method   string       `json:"method"`
	Deed     verdict.Deed `json:"deed"` // retried, hedged, only if never sent, neither
	Attempts int          `json:"attempts"`
	Safe     bool         `json:"safe"`
	Because  string       `json:"because"`
	Budget   string       `json:"budget,omitempty"`
	Entry    string       `json:"entry"`
}

// strayJSON is a name that leads to no method, in JSON.
type strayJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field"`
	Name    string `json:"name"`
	Message string `json:"message"`
}

func (a answer) json(w io.Writer) error {
	whole := struct {
		Methods []inJSON    `json:"methods"`
		Strays  []strayJSON `json:"strays"`
	}{[]inJSON{}, []strayJSON{}}
	for _, r := range a.rows {
		path := "/" + r.service + "/" + r.method
		whole.Methods = append(whole.Methods, inJSON{path, r.Deed, r.Attempts, r.Safe, because(r.Verdict), r.Budget, r.Entry})
	}
	for _, s := range a.strays {
		whole.Strays = append(whole.Strays, strayJSON{s.File, s.Line, s.Column, s.Field, s.Value, s.Message})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(whole)
}
