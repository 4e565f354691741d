// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/stagger-go/stagger/internal/document"
)

// remark is a warning about a config. What it says may depend on descriptors, which come later.
type remark struct {
	Diagnostic

	say func(*Set) string // "": nothing to say; nil: the message of the problem stands
}

// remarksOn collects what may surprise in a config, in its order, beside what its reading has found.
func remarksOn(report *document.Report, c Config) []remark {
	for i, m := range c.Methods {
		if len(m.Names) == 0 { // valid, says the service config's specification
			report.Warnf(document.Item("methodConfig", i), nil, "names nothing, and is never used; name methods, a service or {} for everything, or take it out")
		}
	}
	var list []remark
	for _, p := range report.Warnings() {
		list = append(list, remark{Diagnostic: p})
	}
	add := func(field, value string, say func(*Set) string) {
		list = append(list, remark{report.Locate(Diagnostic{Severity: SeverityWarning, Field: field, Value: strconv.Quote(value)}), say})
	}
	for i, m := range c.Methods {
		for j, name := range m.Names {
			if doubtful(m, c.Idempotency, name) {
				add(fmt.Sprintf("methodConfig[%d].name[%d]", i, j), name.String(), sayUnsafe(name))
			}
		}
	}
	for i, b := range c.Budgets {
		add(fmt.Sprintf("budgets[%d].name", i), b.Name, sayUnused(b.Name))
	}
	slices.SortStableFunc(list, func(a, b remark) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return list
}

// warn says what is to be said of the config now.
func (s *Set) warn() []Diagnostic {
	var warnings []Diagnostic
	for _, r := range s.remarks {
		if r.say != nil {
			r.Message = r.say(s)
		}
		if r.Message != "" {
			warnings = append(warnings, r.Diagnostic)
		}
	}
	return warnings
}

// sayUnused says that only code could use a budget.
func sayUnused(budget string) func(*Set) string {
	return func(s *Set) string {
		used := slices.ContainsFunc(s.policies, func(p *Policy) bool { return p.Budget() == budget })
		if used {
			return ""
		}
		return "no policy names this budget"
	}
}
