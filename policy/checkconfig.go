// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// checkConfig reports everything that is wrong with c.
func checkConfig(ps *problems, c Config) {
	if c.Idempotency > Never {
		ps.add("idempotency", uint8(c.Idempotency), "must be ASSUME, DECLARED or NONE")
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
	if len(names) == 0 {
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

func checkBudgets(ps *problems, budgets []BudgetSpec) {
	names := map[string]bool{}
	for i, b := range budgets {
		path := fmt.Sprintf("budgets[%d].", i)
		switch {
		case b.Name == "":
			ps.add(path+"name", nil, "must be the name that policies use")
		case strings.EqualFold(b.Name, NoBudget):
			ps.add(path+"name", b.Name, "must not be NONE, which means no budget")
		case names[b.Name]:
			ps.add(path+"name", b.Name, "another budget has that name")
		}
		names[b.Name] = true
		if b.Scope > PerService {
			ps.add(path+"scope", uint8(b.Scope), "must be TARGET, PROCESS or SERVICE")
		}
		checkKind(ps, path, b)
	}
}

func checkKind(ps *problems, path string, b BudgetSpec) {
	switch {
	case b.Ratio != nil && b.Throttle != nil:
		ps.add(path+"throttle", nil, "a budget is of one kind: ratio or throttle, not both")
	case b.Ratio != nil:
		checkRatio(ps, path+"ratio.", *b.Ratio)
	case b.Throttle != nil:
		checkThrottle(ps, path+"throttle.", *b.Throttle)
	case ps.whole(path+"ratio") && ps.whole(path+"throttle"):
		ps.add(strings.TrimSuffix(path, "."), nil, "must have a kind: ratio or throttle")
	}
}

func checkRatio(ps *problems, path string, r RatioSpec) {
	checkNumber(ps, path+"percent", r.Percent, 0.0001, 1000)
	checkNumber(ps, path+"minPerSecond", r.MinPerSecond, 0, 1e6)
	if r.Window < time.Second || r.Window > time.Minute {
		ps.add(path+"window", r.Window, "must be 1s to 60s")
	}
	checkNumber(ps, path+"timeoutCost", r.TimeoutCost, 1, 1000)
	checkNumber(ps, path+"timeoutBonus", r.TimeoutBonus, 0, 1000)
}

// checkNumber wants four decimals at most: a budget counts in whole millionths of a token, and
// nothing may be rounded in silence.
func checkNumber(ps *problems, field string, v, low, high float64) {
	scaled := math.Round(v*1e4) / 1e4
	switch {
	case !(v >= low && v <= high): // NaN too
		ps.add(field, v, "must be %v to %s", low, strconv.FormatFloat(high, 'f', -1, 64))
	case scaled != v:
		ps.add(field, v, "must have at most four decimals, such as %v", scaled)
	}
}

func checkThrottle(ps *problems, path string, t ThrottleSpec) {
	if t.MaxTokens < 1 || t.MaxTokens > 1000 {
		ps.add(path+"maxTokens", t.MaxTokens, "must be a whole number from 1 to 1000")
	}
	if !(t.TokenRatio >= 0.001) || math.IsInf(t.TokenRatio, 0) {
		ps.add(path+"tokenRatio", t.TokenRatio, "must be at least 0.001: decimals beyond the third are dropped")
	}
}
