// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/frombudget"
	"github.com/stagger-go/stagger/internal/lookup"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Config is a whole policy file as plain data, with a field for each top-level key. [Set.Config] returns that of a file, and a
// program may write one for [NewSet].
type Config struct {
	Methods     []MethodConfig
	Budgets     []BudgetSpec
	Throttling  *budget.ThrottleConfig // the budget of policies without a budget; nil: the default budget
	Idempotency Idempotency            // for entries without one
	MaxWaiting  int                    // how many calls may wait in a backoff at a time; 0: 10,000
	// MaxAttemptsLimit caps the policies' maxAttempts, 2 to 100; 0: 5, as in gRFC A6.
	MaxAttemptsLimit int
	Mode             Mode     // for all calls; entries may be stricter
	Percent          *float64 // the share of all calls to which the mode applies, 0 to 100 with at most four decimals; nil: 100

	// Channel has the features that gRPC itself implements, as in a service config: a JSON map with loadBalancingPolicy,
	// loadBalancingConfig, healthCheckConfig and connectionScaling. A Retrier passes loadBalancingConfig to its connections if
	// it names the policy of package balancer. "": none.
	Channel string
}

// clone returns a deep copy.
func (c Config) clone() Config {
	c.Methods = slices.Clone(c.Methods)
	for i, m := range c.Methods {
		c.Methods[i] = MethodConfig{slices.Clone(m.Names), m.clone()}
	}
	c.Budgets = slices.Clone(c.Budgets)
	c.Throttling, c.Percent = cloned(c.Throttling), cloned(c.Percent)
	return c
}

// MethodConfig is one entry: the policy of the methods that it names.
type MethodConfig struct {
	// Names are paths as gRPC and its generated code write them: "/acme.orders.v1.OrderService/GetOrder" is a method,
	// "/acme.orders.v1.OrderService/" all methods of a service, and "/" everything.
	Names []string
	Spec
}

// namesMethod reports whether a name is that of a single method.
func namesMethod(name string) bool { return !strings.HasSuffix(name, "/") }

// convert converts a file to a config, with defaults for missing keys.
func convert(report *document.Report, f *policyv1.PolicyFile) Config {
	c := Config{
		Idempotency: word[Idempotency](f.GetIdempotency()), MaxWaiting: toInt(f.GetMaxWaiting()), MaxAttemptsLimit: toInt(f.GetMaxAttemptsLimit()),
		Mode: word[Mode](f.GetMode()), Percent: f.Percent,
		Channel: channel{
			LoadBalancingPolicy: f.GetLoadBalancingPolicy(),
			LoadBalancingConfig: jsonText(f.GetLoadBalancingConfig().AsSlice()),
			HealthCheckConfig:   jsonText(f.GetHealthCheckConfig().AsMap()),
			ConnectionScaling:   jsonText(f.GetConnectionScaling().AsMap()),
		}.text(),
	}
	for i, m := range f.GetMethodConfig() {
		c.Methods = append(c.Methods, convertMethod(report, document.Item("methodConfig", i), m))
	}
	for i, b := range f.GetBudgets() {
		c.Budgets = append(c.Budgets, convertBudget(b))
		if ratio := b.GetRatio(); ratio != nil && ratio.HedgeCost != nil && ratio.GetHedgeCost() == 0 {
			report.Errorf(document.Item("budgets", i)+".ratio.hedgeCost", 0, "must be 1 to 1000; without the key it is timeoutCost")
		}
	}
	if t := f.GetRetryThrottling(); t != nil {
		c.Throttling = new(convertThrottle(t))
	}
	return c
}

func convertMethod(report *document.Report, path string, m *policyv1.MethodConfig) MethodConfig {
	c := MethodConfig{Spec: Spec{
		Timeout:          m.GetTimeout().AsDuration(),
		WaitForReady:     m.WaitForReady,
		MaxRequestBytes:  convertBytes(m.MaxRequestMessageBytes),
		MaxResponseBytes: convertBytes(m.MaxResponseMessageBytes),
		Idempotency:      word[Idempotency](m.GetIdempotency()),
		Admission:        word[Admission](m.GetAdmission()),
		Criticality:      word[Criticality](m.GetCriticality()),
		Mode:             word[Mode](m.GetMode()),
		Percent:          m.Percent,
	}}
	for i, n := range m.GetName() {
		c.Names = append(c.Names, convertName(report, document.Item(path+".name", i), n))
	}
	if k := m.GetIdempotencyKey(); k != nil {
		c.IdempotencyKey = k.GetHeader()
		if !report.Written(path + ".idempotencyKey.header") {
			c.IdempotencyKey = defaults.IdempotencyHeader
		}
	}
	if r := m.GetRetryPolicy(); r != nil {
		retry := convertRetry(report, path+".retryPolicy", r)
		c.Retry = &retry
	}
	if h := m.GetHedgingPolicy(); h != nil {
		c.Hedge = convertHedge(h)
	}
	return c
}

func convertBytes(n *uint32) *int {
	if n == nil {
		return nil
	}
	return new(toInt(*n))
}

// toInt clamps n, which only matters if an int has 32 bits: no message and no call gets that far.
func toInt(n uint32) int { return int(min(uint64(n), math.MaxInt)) }

// checkConfig reports all errors in c.
func checkConfig(report *document.Report, c Config) {
	checkWord(report, "idempotency", c.Idempotency, policyv1.Idempotency(0))
	if c.MaxWaiting < 0 || c.MaxWaiting == 0 && report.Written("maxWaiting") {
		report.Errorf("maxWaiting", c.MaxWaiting, "must be at least 1; for no retries leave the policies out")
	}
	if n := c.MaxAttemptsLimit; n != 0 && (n < 2 || n > 100) || n == 0 && report.Written("maxAttemptsLimit") {
		report.Errorf("maxAttemptsLimit", n, "must be 2 to 100; for no retries leave the policies out")
	}
	checkMode(report, "", c.Mode, c.Percent)
	checkBudgets(report, c.Budgets)
	budgets := budgetNames(report, c.Budgets)
	checkChannel(report, c)
	if c.Throttling != nil {
		checkBudget(report, "retryThrottling", frombudget.Config(*c.Throttling))
	}
	names := map[string]string{}
	for i, m := range c.Methods {
		path := fmt.Sprintf("methodConfig[%d].", i)
		checkNames(report, path, m.Names, names)
		checkEntry(report, path, m.Spec, budgets)
	}
}

// checkEntry checks a spec, whose budget must be one of those declared.
func checkEntry(report *document.Report, prefix string, s Spec, budgets map[string]bool) {
	checkSpec(report, prefix, s)
	if s.Retry != nil {
		checkBudgetName(report, prefix+"retryPolicy.budget", s.Retry.Budget, budgets)
	}
	if s.Hedge != nil {
		checkBudgetName(report, prefix+"hedgingPolicy.budget", s.Hedge.Budget, budgets)
	}
}

// convertName converts a name to a path. If it reports the name, checkNames can tell the path from a valid one.
func convertName(report *document.Report, field string, n *policyv1.Name) string {
	if n.GetService() == "" && n.GetMethod() != "" {
		report.Errorf(field+".service", "", "must be the full name of the service of method %q", n.GetMethod())
	}
	if strings.Contains(n.GetService(), "/") {
		report.Errorf(field+".service", n.GetService(), "must be a full name such as acme.orders.v1.OrderService, without slashes")
	}
	if strings.Contains(n.GetMethod(), "/") {
		report.Errorf(field+".method", n.GetMethod(), "must be a method's name such as GetOrder, without slashes")
	}
	if n.GetService() == "" && n.GetMethod() == "" {
		return "/"
	}
	return "/" + n.GetService() + "/" + n.GetMethod()
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

// budgetNames returns the names that policies may use, or nil if a budget's name is missing.
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

// checkNumber checks bounds, and the number of decimals: values are never rounded silently.
func checkNumber(report *document.Report, field string, v, low, high float64, decimals int) {
	scale := math.Pow10(decimals)
	scaled := math.Round(v*scale) / scale
	switch {
	case !(v >= low && v <= high): // also true for NaN
		report.Errorf(field, v, "must be %v to %s", low, strconv.FormatFloat(high, 'f', -1, 64))
	case scaled != v:
		report.Errorf(field, v, "must have at most %d decimals, such as %v", decimals, scaled)
	}
}
