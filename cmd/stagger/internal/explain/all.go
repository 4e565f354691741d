// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

// row is one method of a service, or stands for all methods without a row.
type row struct {
	explain.Effect

	service, method string // both or the second may be others
}

// others stands for services or methods that the file does not name.
const others = "(others)"

// rowsOfAPI returns the methods of an API.
func rowsOfAPI(set *methods.Set, known cli.API) []row {
	var rows []row
	for _, s := range known.Services() {
		for _, method := range cli.Methods(s) {
			service := string(s.FullName())
			rows = append(rows, row{effectOf(set, "/"+service+"/"+method), service, method})
		}
	}
	return rows
}

// rowsOfFile returns the methods that a file names, by service in the order of the file.
func rowsOfFile(set *methods.Set) []row {
	list := set.Policies()
	rows := make([]row, 0, len(list))
	var services []string // in the order of the file
	for _, p := range list {
		name := p.Name()
		path := name
		service, method := lookup.Split(name)
		if service == "" {
			path = "/" + others + "/" + others // matched only by an entry for everything
		}
		r := row{effectOf(set, path), cmp.Or(service, others), cmp.Or(method, others)}
		if p.Idempotency() == "DECLARED" && p.IdempotencyKey() == "" {
			r.Because = "unless its idempotency_level declares it idempotent"
		}
		rows = append(rows, r)
		if service != "" && !slices.Contains(services, r.service) {
			services = append(services, r.service)
		}
	}
	services = append(services, others)
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(
			cmp.Compare(slices.Index(services, a.service), slices.Index(services, b.service)),
			cmp.Compare(rank(a.method), rank(b.method)),
		)
	})
	return rows
}

// rank returns the order of a method: others come after names.
func rank(method string) int {
	if method == others {
		return 1
	}
	return 0
}

// effectOf returns the effect for a Retrier with the file's cap on attempts.
func effectOf(set *methods.Set, path string) explain.Effect {
	return explain.EffectOf(set, path, set.Compiled().MaxAttemptsLimit)
}

// overview is the response to --all.
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

// service returns the table of one service.
func service(rows []row, p terminal.Style) string {
	t := report.Table{Columns: []string{"method", "retried or hedged", "attempts", "because", "budget", "entry"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{
			document.Printable(r.method), colour(p, r.Strategy), strconv.Itoa(r.Attempts), document.Printable(r.Why()),
			document.Printable(r.Budget),
			document.Printable(shortEntry(r)),
		})
	}
	return p.Title(cli.Name(rows[0].service)) + "\n" + terminal.Table(t, p, "") + "\n"
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

// shortEntry returns an entry's name without its service.
func shortEntry(r row) string {
	if r.Policy == nil {
		return ""
	}
	switch n := r.Policy.Name(); r.Entry {
	case n:
		if strings.HasSuffix(n, "/") {
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

// methodJSON is a row in JSON.
type methodJSON struct {
	Method   string           `json:"method"`
	Strategy explain.Strategy `json:"strategy"`
	Attempts int              `json:"attempts"`
	Safe     bool             `json:"safe"`
	Because  string           `json:"because"`
	Budget   string           `json:"budget,omitempty"`
	Entry    string           `json:"entry"`
}

func (a overview) json(w io.Writer) error {
	whole := struct {
		Methods   []methodJSON    `json:"methods"`
		Unmatched []unmatchedJSON `json:"unmatched"`
	}{[]methodJSON{}, []unmatchedJSON{}}
	for _, r := range a.rows {
		whole.Methods = append(whole.Methods, methodJSON{"/" + r.service + "/" + r.method, r.Strategy, r.Attempts, r.Safe, r.Why(), r.Budget, r.Entry})
	}
	for _, s := range a.unmatched {
		whole.Unmatched = append(whole.Unmatched, unmatchedJSON{s.File, s.Line, s.Column, s.Field, s.Value, s.Message})
	}
	return cli.WriteJSON(w, whole)
}
