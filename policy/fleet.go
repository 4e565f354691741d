// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/document"
)

// fleetOf is the pool that a budget leases its reserve from; the zero value if it has none.
func fleetOf(b BudgetSpec) budget.FleetConfig {
	ratio, _ := b.Config.(budget.RatioConfig)
	return ratio.Fleet
}

// lintPool says if a pool can never pay for an extra attempt of the method.
func lintPool(report *document.Report, path string, r RetrySpec, b BudgetSpec) {
	const least = 10 // that any pool holds
	ratio, _ := b.Config.(budget.RatioConfig)
	dearest := 1.0
	for _, own := range r.PerCode {
		dearest = max(dearest, own.CostFactor)
	}
	if r.PerAttemptTimeout > 0 {
		factor := r.timeoutFactor()
		dearest = max(dearest, ratio.TimeoutCost*factor)
	}
	if holds := max(ratio.Fleet.PerSecond, least); dearest > holds {
		report.Warnf(path+".retryPolicy", nil, "pool %s never pays for its dearest attempt: that costs %v, and the pool holds %v; "+
			"raise perSecond, or lower timeoutCost or costFactor", ratio.Fleet.Name, dearest, holds)
	}
}

// lintFleets says which budgets lease from a pool, and what programs need for that.
func lintFleets(report *document.Report, c Config) (list []Diagnostic) {
	for i, b := range c.Budgets {
		pool := fleetOf(b)
		if pool.Name == "" {
			continue
		}
		d := locate(report, Diagnostic{Severity: SeverityNote, Field: document.Item("budgets", i) + ".ratio.fleet"})
		d.Value = ""
		d.Message = fmt.Sprintf("the reserve is leased from pool %s, which has %v extra attempts a second for all processes together; "+
			"programs need interceptor.WithFleet(redisbudget.New(client)), or refuse the file", pool.Name, pool.PerSecond)
		list = append(list, d)
	}
	return list
}
