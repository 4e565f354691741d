// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// poolOf returns the pool from which a budget leases its reserve, and its rate, or "" if it has none.
func poolOf(b BudgetSpec) (name string, perSecond float64) {
	if ratio, ok := b.Config.(budget.RatioConfig); ok && ratio.Fleet != "" {
		return ratio.Fleet, ratio.MinPerSecond
	}
	return "", 0
}

// reportFleet reports those parts of a file's fleet that a config can't hold.
func reportFleet(report *document.Report, path string, r *policyv1.RatioBudget) {
	fleet := r.GetFleet()
	switch {
	case fleet == nil:
		return
	case fleet.GetName() == "" && fleet.GetPerSecond() == 0:
		report.Errorf(path+".fleet", nil, "must have a name and perSecond")
	case fleet.GetName() == "":
		report.Errorf(path+".fleet.name", "", "must be 1 to 64 letters, digits, '-', '_' and '.'")
		unnamed := balance.DefaultRatio()
		unnamed.Fleet, unnamed.MinPerSecond = "unnamed", fleet.GetPerSecond()
		checkBudget(report, path, unnamed)
	}
	if r.GetMinPerSecond() != 0 {
		report.Errorf(path+".minPerSecond", r.GetMinPerSecond(), "cannot be combined with a fleet, whose pool is the reserve")
	}
}

// lintPool warns of a pool that can never pay for an extra attempt of the method.
func lintPool(report *document.Report, path string, r RetrySpec, b BudgetSpec) {
	const least = 10 // the minimum capacity of a pool
	ratio, _ := b.Config.(budget.RatioConfig)
	dearest := 1.0
	for _, own := range r.PerCode {
		dearest = max(dearest, own.CostFactor)
	}
	if r.PerAttemptTimeout > 0 {
		factor := r.timeoutFactor()
		dearest = max(dearest, ratio.TimeoutCost*factor)
	}
	if holds := max(ratio.MinPerSecond, least); dearest > holds {
		report.Warnf(path+".retryPolicy", nil, "pool %s never pays for its most expensive attempt: that costs %v, and the pool holds %v; "+
			"raise perSecond, or lower timeoutCost or costFactor", ratio.Fleet, dearest, holds)
	}
}

// lintFleets notes which budgets lease from a pool, and the requirements for programs.
func lintFleets(report *document.Report, c Config) (list []Diagnostic) {
	for i, b := range c.Budgets {
		name, perSecond := poolOf(b)
		if name == "" {
			continue
		}
		d := locate(report, Diagnostic{Severity: SeverityNote, Field: document.Item("budgets", i) + ".ratio.fleet"})
		d.Value = ""
		d.Message = fmt.Sprintf("the reserve is leased from pool %s, which has %v extra attempts a second for all processes together; "+
			"programs need interceptor.WithFleet(redisbudget.New(client)), or refuse the file", name, perSecond)
		list = append(list, d)
	}
	return list
}
