// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"

	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
)

// Warnings returns the warnings of the report and of the config itself, in the order of the file.
func Warnings(report *document.Report, c Config) []document.Diagnostic {
	used := map[string]bool{}
	for i, m := range c.Methods {
		if used[m.budget()] = true; len(m.Names) == 0 { // valid, by the service config's specification
			report.Warnf(document.Item("methodConfig", i), nil, "names nothing, and is never used; name methods, a service "+
				"or {} for everything, or remove it")
		}
	}
	for i, m := range c.Methods {
		path := document.Item("methodConfig", i)
		for j, name := range m.Names {
			warnMismatch(report, document.Item(path+".name", j), name)
		}
		warnCut(report, path, m.Policy, cmp.Or(c.MaxAttemptsLimit, defaults.MaxAttempts))
	}
	for i, b := range c.Budgets {
		if !used[b.Name] {
			report.Warnf(document.Item("budgets", i)+".name", b.Name, "no policy names this budget")
		}
	}
	c.channel.warnNotDone(report)
	return report.Warnings()
}

// warnMismatch warns of a name that can match no call.
func warnMismatch(report *document.Report, field, name string) {
	part, why := lookup.Mismatch(name)
	if why == "" {
		return
	}
	value := name
	if key := field + "." + part; report.Written(key) {
		field, value = key, report.Node(key).Text
	}
	report.Warnf(field, value, "matches nothing: %s", why)
}

// warnCut warns of more attempts than the config allows.
func warnCut(report *document.Report, path string, s Policy, most int) {
	attempts := 0
	switch {
	case s.Retry != nil:
		path, attempts = path+".retryPolicy.maxAttempts", s.Retry.MaxAttempts
	case s.Hedge != nil:
		path, attempts = path+".hedgingPolicy.maxAttempts", s.Hedge.MaxAttempts
	}
	if attempts > most {
		report.Warnf(path, attempts, "is cut to %d, unless a higher maxAttemptsLimit allows more", most)
	}
}
