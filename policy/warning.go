// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/stagger-go/stagger/internal/document"
)

// warnings returns the warnings of the report and of the config itself, in the order of the file.
func warnings(report *document.Report, c Config) []Diagnostic {
	used := map[string]bool{}
	for i, m := range c.Methods {
		if used[m.budget()] = true; len(m.Names) == 0 { // valid, by the service config's specification
			report.Warnf(document.Item("methodConfig", i), nil, "names nothing, and is never used; name methods, a service or {} for everything, or remove it")
		}
	}
	for i, m := range c.Methods {
		for j, name := range m.Names {
			if strings.Contains(name, "*") {
				report.Warnf(document.Item(document.Item("methodConfig", i)+".name", j), name,
					"matches nothing: there are no patterns; a service without a method stands for all its methods, and {} for everything")
			}
		}
	}
	for i, b := range c.Budgets {
		if !used[b.Name] {
			report.Warnf(document.Item("budgets", i)+".name", b.Name, "no policy names this budget")
		}
	}
	c.channel.warnNotDone(report)
	return report.Warnings()
}
