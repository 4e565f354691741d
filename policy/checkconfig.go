// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/stagger-go/stagger/internal/document"
)

// checkConfig reports everything that is wrong with c.
func checkConfig(report *document.Report, c Config) {
	if c.Idempotency > IdempotencyNone {
		report.Errorf("idempotency", uint8(c.Idempotency), "must be ASSUME, DECLARED or NONE")
	}
	if c.MaxWaiting < 0 || c.MaxWaiting == 0 && report.Written("maxWaiting") {
		report.Errorf("maxWaiting", c.MaxWaiting, "must be at least 1; for no retries leave the policies out")
	}
	checkBudgets(report, c.Budgets)
	budgets := budgetNames(report, c.Budgets)
	checkChannel(report, c.channel)
	if c.Throttling != nil {
		checkBudget(report, "retryThrottling", *c.Throttling)
	}
	names := map[Name]string{}
	for i, m := range c.Methods {
		path := fmt.Sprintf("methodConfig[%d].", i)
		checkNames(report, path, m.Names, names)
		checkSpec(report, path, m.Spec)
		if m.Retry != nil {
			checkBudgetName(report, path+"retryPolicy.budget", m.Retry.Budget, budgets)
		}
		if m.Hedge != nil {
			checkBudgetName(report, path+"hedgingPolicy.budget", m.Hedge.Budget, budgets)
		}
	}
}

// checkBudgetName takes "" for the default budget, unless a file writes "". If not all the names
// are known that budgets declare, any may be one of them.
func checkBudgetName(report *document.Report, field, name string, declared map[string]bool) {
	if name == "" && !report.Written(field) || name != "" && (declared == nil || declared[name]) {
		return
	}
	report.Errorf(field, name, "no budget has that name; declare it under budgets, or write NONE for no limit")
}

// checkNames checks the names of one entry; seen maps those before it to where they stand.
func checkNames(report *document.Report, path string, names []Name, seen map[Name]string) {
	if len(names) == 0 && !report.HasFile() { // in a file it is valid, and a warning
		report.Errorf(path+"name", nil, "must name at least one method, service or {} for everything")
	}
	for i, n := range names {
		field := fmt.Sprintf("%sname[%d]", path, i)
		if n.Service == "" && n.Method != "" {
			report.Errorf(field+".service", "", "must be the full name of the service beside method %q", n.Method)
		}
		if strings.Contains(n.Service, "/") {
			report.Errorf(field+".service", n.Service, "must be a full name such as acme.orders.v1.OrderService, without slashes")
		}
		if strings.Contains(n.Method, "/") {
			report.Errorf(field+".method", n.Method, "must be a method's name such as GetOrder, without slashes")
		}
		if !report.Whole(field) {
			continue // not known which name it is
		}
		if first, twice := seen[n]; twice {
			report.Errorf(field, n.String(), "is named by %s too; only one entry may have it", first)
			continue
		}
		seen[n] = field
	}
}

// budgetNames are the names that policies may use; nil if one of them is missing.
func budgetNames(report *document.Report, budgets []BudgetSpec) map[string]bool {
	names := map[string]bool{NoBudget: true}
	for _, b := range budgets {
		names[b.Name] = true
	}
	if names[""] || report.Skipped("budgets") {
		return nil
	}
	return names
}
