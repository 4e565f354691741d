// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"
	"strings"
	"unicode"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/bounds"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Budget describes one budget.
type Budget struct {
	Name string
	// Scope decides which calls share one balance: all of the Retrier, "PROCESS"; those to one target, over all connections,
	// "TARGET" or ""; or those to one service of one target, "SERVICE".
	Scope  string
	Config budget.Config // of one of package budget's kinds: [budget.BucketConfig] or [budget.ThrottleConfig]
}

// budgetKinds are the keys of the kinds of budgets.
var budgetKinds = []string{"bucket", "throttle"}

// noBudget as a budget's name means no limit: "budget: NONE".
const noBudget = "NONE"

func checkBudgets(report *document.Report, budgets []Budget) {
	names := map[string]bool{}
	for i, b := range budgets {
		path := document.Item("budgets", i)
		switch {
		case b.Name == "":
			report.Errorf(path+".name", nil, "must be the name that policies use")
		case strings.EqualFold(b.Name, noBudget):
			report.Errorf(path+".name", b.Name, "must not be NONE, which means no budget")
		case names[b.Name]:
			report.Errorf(path+".name", b.Name, "another budget has that name")
		}
		names[b.Name] = true
		if b.Config != nil {
			checkBudget(report, path+"."+b.Config.Kind(), b.Config)
			continue
		}
		if !slices.ContainsFunc(budgetKinds, func(kind string) bool { return !report.Whole(path + "." + kind) }) {
			report.Errorf(path, nil, "must have a kind: %s", document.OneOf(budgetKinds))
		}
	}
}

// checkBudget reports the errors of package budget, with the keys of the file.
func checkBudget(report *document.Report, path string, c budget.Config) {
	for _, wrong := range bounds.Errors(bounds.OfBudget(c)) {
		report.Errorf(path+"."+keyOf(wrong.Field), verbatim(wrong.Value), "%s", wrong.Message)
	}
}

// keyOf returns the key of a config's field: maxTokens for MaxTokens.
func keyOf(field string) string {
	runes := []rune(field)
	runes[0] = unicode.ToLower(runes[0])
	return string(runes)
}

// verbatim is a value that messages show unchanged.
type verbatim string
