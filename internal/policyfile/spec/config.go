// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
)

// Config is a whole policy file, with a field for each top-level key.
type Config struct {
	Methods         []MethodConfig
	Budgets         []Budget
	RetryThrottling *budget.ThrottleConfig // the budget of policies without a budget; nil: the default budget
	Idempotency     string                 // for entries without one
	MaxWaiting      int                    // how many calls may wait in a backoff at a time; 0: 10,000
	// MaxAttemptsLimit caps the policies' maxAttempts, 2 to 100; 0: 5, as in gRFC A6.
	MaxAttemptsLimit int
	Mode             string        // for all calls; entries may be stricter
	DefaultTimeout   time.Duration // of unary calls with neither a deadline nor an entry's timeout; 0: none

	channel channel // of a file
}

// Clone returns a deep copy.
func (c Config) Clone() Config {
	c.Methods = slices.Clone(c.Methods)
	for i, m := range c.Methods {
		c.Methods[i] = MethodConfig{slices.Clone(m.Names), m.Clone()}
	}
	c.Budgets = slices.Clone(c.Budgets)
	c.RetryThrottling = cloned(c.RetryThrottling)
	return c
}

// WithDefaults returns a deep copy with defaults for MaxWaiting, MaxAttemptsLimit and the budgets' scopes.
func (c Config) WithDefaults() Config {
	c = c.Clone()
	c.MaxWaiting = cmp.Or(c.MaxWaiting, defaults.MaxWaiting)
	c.MaxAttemptsLimit = cmp.Or(c.MaxAttemptsLimit, defaults.MaxAttempts)
	for i := range c.Budgets {
		c.Budgets[i].Scope = cmp.Or(c.Budgets[i].Scope, "TARGET")
	}
	return c
}

// MethodConfig is one entry: the policy of the methods that it names.
type MethodConfig struct {
	// Names are paths as gRPC and its generated code write them: "/acme.orders.v1.OrderService/GetOrder" is a method,
	// "/acme.orders.v1.OrderService/" all methods of a service, and "/" everything.
	Names []string
	Policy
}

// namesMethod reports whether a name is that of a single method.
func namesMethod(name string) bool { return !strings.HasSuffix(name, "/") }

// The range of maxAttemptsLimit.
const leastLimit, mostLimit = 2, 100

// Check reports all errors in c. Words and codes are not checked again: reading has refused what is none.
func Check(report *document.Report, c Config) {
	if c.MaxWaiting < 0 || c.MaxWaiting == 0 && report.Written("maxWaiting") {
		report.Errorf("maxWaiting", c.MaxWaiting, "must be at least 1; for no retries leave the policies out")
	}
	if n := c.MaxAttemptsLimit; n != 0 && (n < leastLimit || n > mostLimit) || n == 0 && report.Written("maxAttemptsLimit") {
		report.Errorf("maxAttemptsLimit", n, "must be %d to %d; for no retries leave the policies out", leastLimit, mostLimit)
	}
	checkPositive(report, "defaultTimeout", c.DefaultTimeout)
	checkBudgets(report, c.Budgets)
	budgets := budgetNames(report, c.Budgets)
	c.channel.check(report)
	if c.RetryThrottling != nil {
		checkBudget(report, "retryThrottling", *c.RetryThrottling)
	}
	names := map[string]string{}
	for i, m := range c.Methods {
		path := fmt.Sprintf("methodConfig[%d].", i)
		checkNames(report, path, m.Names, names)
		checkEntry(report, path, m.Policy, budgets)
	}
}

// checkEntry checks a spec, whose budget must be one of those declared.
func checkEntry(report *document.Report, prefix string, s Policy, budgets map[string]bool) {
	CheckPolicy(report, prefix, s)
	if s.Retry != nil {
		checkBudgetName(report, prefix+"retryPolicy.budget", s.Retry.Budget, budgets)
	}
	if s.Hedge != nil {
		checkBudgetName(report, prefix+"hedgingPolicy.budget", s.Hedge.Budget, budgets)
	}
}

// checkNames checks the names of one entry. seen maps earlier names to their fields.
func checkNames(report *document.Report, prefix string, names []string, seen map[string]string) {
	for i, n := range names {
		field := fmt.Sprintf("%sname[%d]", prefix, i)
		service, method := lookup.Split(n)
		if n != "/" && (service == "" || n != "/"+service+"/"+method || strings.Contains(method, "/")) {
			if !report.Written(field) { // otherwise its keys are reported
				report.Errorf(field, n, `must be "/service/method", "/service/" or "/"`)
			}
			continue
		}
		if !report.Whole(field) {
			continue // the name is unknown
		}
		if first, twice := seen[n]; twice {
			report.Errorf(field, n, "is named by %s too; only one entry may have it", first)
			continue
		}
		seen[n] = field
	}
}

// budgetNames returns the names that policies may use, or nil if a budget's name is missing or was reported: policies may name what its
// author meant.
func budgetNames(report *document.Report, budgets []Budget) map[string]bool {
	names := map[string]bool{noBudget: true}
	for _, b := range budgets {
		if b.Name == "" || strings.EqualFold(b.Name, noBudget) || names[b.Name] {
			return nil
		}
		names[b.Name] = true
	}
	if report.Skipped("budgets") {
		return nil
	}
	return names
}

// checkBudgetName accepts "" as the default budget, unless a file writes "". If some budgets have no name, any name may be one
// of them.
func checkBudgetName(report *document.Report, field, name string, declared map[string]bool) {
	if name == "" && !report.Written(field) || name != "" && (declared == nil || declared[name]) {
		return
	}
	report.Errorf(field, name, "no budget has that name; declare it under budgets, or write NONE for no limit")
}

// checkPositive accepts 0 as "not set", unless a file sets it to 0.
func checkPositive(report *document.Report, field string, d time.Duration) {
	if d < 0 || d == 0 && report.Written(field) {
		report.Errorf(field, d, "must be more than 0s")
	}
}

// checkDecimals checks the number of decimals: values are never rounded silently.
func checkDecimals(report *document.Report, field string, v float64, decimals int) {
	scale := math.Pow10(decimals)
	if rounded := math.Round(v*scale) / scale; rounded != v {
		report.Errorf(field, v, "must have at most %d decimals, such as %v", decimals, rounded)
	}
}
