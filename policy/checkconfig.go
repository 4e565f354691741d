// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
)

// checkConfig reports everything that is wrong with c.
func checkConfig(ps *problems, c Config) {
	if c.Idempotency > IdempotencyNone {
		ps.add("idempotency", uint8(c.Idempotency), "must be ASSUME, DECLARED or NONE")
	}
	if c.MaxWaiting < 0 || c.MaxWaiting == 0 && ps.written("maxWaiting") {
		ps.add("maxWaiting", c.MaxWaiting, "must be at least 1; for no retries leave the policies out")
	}
	checkBudgets(ps, c.Budgets)
	budgets := budgetNames(ps, c.Budgets)
	if c.Throttling != nil {
		checkThrottle(ps, "retryThrottling.", *c.Throttling)
	}
	names := map[Name]string{}
	for i, m := range c.Methods {
		path := fmt.Sprintf("methodConfig[%d].", i)
		checkNames(ps, path, m.Names, names)
		checkSpec(ps, path, m.Spec)
		if m.Retry != nil {
			checkBudgetName(ps, path+"retryPolicy.budget", m.Retry.Budget, budgets)
		}
		if m.Hedge != nil {
			checkBudgetName(ps, path+"hedgingPolicy.budget", m.Hedge.Budget, budgets)
		}
	}
}

// checkBudgetName takes "" for the default budget, unless a file writes "". If not all the names
// are known that budgets declare, any may be one of them.
func checkBudgetName(ps *problems, field, name string, declared map[string]bool) {
	if name == "" && !ps.written(field) || name != "" && (declared == nil || declared[name]) {
		return
	}
	ps.add(field, name, "no budget has that name; declare it under budgets, or write NONE for no limit")
}

// checkNames checks the names of one entry; seen maps those before it to where they stand.
func checkNames(ps *problems, path string, names []Name, seen map[Name]string) {
	if len(names) == 0 && ps.source == nil { // in a file it is valid, and a remark
		ps.add(path+"name", nil, "must name at least one method, service or {} for everything")
	}
	for i, n := range names {
		field := fmt.Sprintf("%sname[%d]", path, i)
		if n.Service == "" && n.Method != "" {
			ps.add(field+".service", "", "must be the full name of the service beside method %q", n.Method)
		}
		if strings.Contains(n.Service, "/") {
			ps.add(field+".service", n.Service, "must be a full name such as acme.orders.v1.OrderService, without slashes")
		}
		if strings.Contains(n.Method, "/") {
			ps.add(field+".method", n.Method, "must be a method's name such as GetOrder, without slashes")
		}
		if !ps.whole(field) {
			continue // not known which name it is
		}
		if first, twice := seen[n]; twice {
			ps.add(field, n.String(), "is named by %s too; only one entry may have it", first)
			continue
		}
		seen[n] = field
	}
}

// budgetNames are the names that policies may use; nil if one of them is missing.
func budgetNames(ps *problems, budgets []BudgetSpec) map[string]bool {
	names := map[string]bool{NoBudget: true}
	for _, b := range budgets {
		names[b.Name] = true
	}
	if names[""] || ps.lost("budgets") {
		return nil
	}
	return names
}
