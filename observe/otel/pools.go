// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/stagger-go/stagger/interceptor"
)

// pools are the instruments of the pools that a fleet shares.
type pools struct {
	away, balance, clients metric.Float64ObservableGauge
	asked, leased          metric.Float64ObservableCounter
	denied, requests       metric.Int64ObservableCounter
}

func (p *pools) instruments(meter metric.Meter) error {
	var errs [7]error
	p.away, errs[0] = meter.Float64ObservableGauge("stagger.pool.away",
		metric.WithDescription("1 while the pool cannot be used, else 0."))
	p.balance, errs[1] = meter.Float64ObservableGauge("stagger.pool.balance", metric.WithUnit("{attempt}"),
		metric.WithDescription("Extra attempts that are leased and not spent."))
	p.clients, errs[2] = meter.Float64ObservableGauge("stagger.pool.clients", metric.WithUnit("{client}"),
		metric.WithDescription("Clients that share the pool, as it last said."))
	p.asked, errs[3] = meter.Float64ObservableCounter("stagger.pool.asked", metric.WithUnit("{attempt}"),
		metric.WithDescription("Extra attempts that the pool was asked for."))
	p.leased, errs[4] = meter.Float64ObservableCounter("stagger.pool.leased", metric.WithUnit("{attempt}"),
		metric.WithDescription("Extra attempts that the pool has leased."))
	p.denied, errs[5] = meter.Int64ObservableCounter("stagger.pool.denied", metric.WithUnit("{attempt}"),
		metric.WithDescription("Extra attempts that the pool did not pay for."))
	p.requests, errs[6] = meter.Int64ObservableCounter("stagger.pool.requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests to the pool."))
	return errors.Join(errs[:]...)
}

func (p *pools) all() []metric.Observable {
	return []metric.Observable{p.away, p.balance, p.clients, p.asked, p.leased, p.denied, p.requests}
}

func (m *metrics) collectPools(o metric.Observer, list []interceptor.PoolState) {
	for _, s := range list {
		labels := m.with(attribute.String("pool", s.Name))
		away := 0.0
		if s.Err != nil {
			away = 1
		}
		o.ObserveFloat64(m.pools.away, away, labels)
		o.ObserveFloat64(m.pools.balance, s.Balance, labels)
		if s.Clients > 0 { // else unknown
			o.ObserveFloat64(m.pools.clients, s.Clients, labels)
		}
		o.ObserveFloat64(m.pools.asked, s.Asked, labels)
		o.ObserveFloat64(m.pools.leased, s.Leased, labels)
		o.ObserveInt64(m.pools.denied, count(s.Denied), labels)
		o.ObserveInt64(m.pools.requests, count(s.Requests), labels)
	}
}
