// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger

import (
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/stagger-go/stagger/interceptor"
)

// budgetLabels are the labels of a series of balances. With [Target], several balances may share it.
type budgetLabels struct{ budget, kind, target, service string }

// level is the scarcest balance of a series, and withdrawals the sum of its
// counts.
type (
	level       struct{ balance, capacity float64 }
	withdrawals struct{ granted, refused uint64 }
)

// collectBudgets records the balances.
func (m *metrics) collectBudgets(o metric.Observer, list []interceptor.BudgetState) {
	levels, counts := map[budgetLabels]level{}, map[budgetLabels]withdrawals{}
	for _, b := range list {
		labels := budgetLabels{valid(budgetName(b.Name)), valid(b.Kind), m.targets.of(b.Target), m.services.of(b.Service)}
		sum := counts[labels]
		counts[labels] = withdrawals{sum.granted + b.Granted, sum.refused + b.Refused}
		is := level{b.Balance, b.Capacity}
		if b.Dropped || math.IsInf(is.capacity, 1) { // a budget without a limit has no share
			continue
		}
		if other, ok := levels[labels]; !ok || is.share() < other.share() {
			levels[labels] = is
		}
	}
	for labels, is := range levels {
		o.ObserveFloat64(m.balance, is.balance, m.ofBudget(labels))
		o.ObserveFloat64(m.capacity, is.capacity, m.ofBudget(labels))
	}
	for labels, sum := range counts {
		o.ObserveInt64(m.granted, int64Of(sum.granted), m.ofBudget(labels))
		o.ObserveInt64(m.refused, int64Of(sum.refused), m.ofBudget(labels))
	}
}

// share returns the part of the capacity that is left.
func (l level) share() float64 {
	if l.capacity <= 0 {
		return 0
	}
	return l.balance / l.capacity
}

func (m *metrics) ofBudget(l budgetLabels) metric.MeasurementOption {
	return m.with(attribute.String("budget", l.budget), attribute.String("kind", l.kind),
		attribute.String("grpc.target", l.target), attribute.String("service", l.service))
}

// budgetName returns the label of a budget. The default budget has no name.
func budgetName(name string) string {
	if name == "" {
		return "default"
	}
	return name
}
