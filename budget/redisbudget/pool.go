// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/lease"
)

// pool asks Redis for what a lease needs, in a goroutine of its own.
type pool struct {
	fleet *Fleet
	name  string
	lease *lease.Lease
	woken chan struct{}

	mu        sync.Mutex // guards all below
	perSecond float64
	err       error // of the last request
}

func newPool(f *Fleet, c budget.FleetConfig) *pool {
	p := &pool{fleet: f, name: c.Name, woken: make(chan struct{}, 1)}
	p.lease = lease.New(c.PerSecond, budget.Now(), func() {
		select {
		case p.woken <- struct{}{}:
		default: // it will look anyway
		}
	})
	return p
}

func (p *pool) setRate(perSecond float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.perSecond = perSecond
	p.lease.SetRate(perSecond)
}

// run asks until the Fleet is closed.
func (p *pool) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p.fleet.begin() { // before the lease counts a request, which Close is to wait for
		r, at, ok := p.lease.Next(budget.Now())
		if ok {
			p.tell(p.exchange(r))
			continue
		}
		p.fleet.asking.Done()
		timer.Reset(at - budget.Now())
		select {
		case <-timer.C:
		case <-p.woken:
		case <-p.fleet.done:
		}
	}
}

// exchange makes one request that has begun, and tells the lease. It returns how it has gone, and the one before.
func (p *pool) exchange(r lease.Request) (err, before error) {
	defer p.fleet.asking.Done()
	ctx, cancel := context.WithTimeout(context.Background(), p.fleet.timeout)
	defer cancel()
	a, err := p.request(ctx, r)
	if err != nil {
		p.lease.Failed(budget.Now())
	} else {
		p.lease.Answered(budget.Now(), r, a)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.err = p.err, err
	return err, before
}

// mostClients is more than there are: by a number that somebody else has written there, clients would ask all the time
// or never.
const mostClients = 1e9

// request runs the script.
func (p *pool) request(ctx context.Context, r lease.Request) (lease.Answer, error) {
	p.mu.Lock()
	rate := int64(math.Round(p.perSecond * 1e6))
	p.mu.Unlock()
	key := "stagger:{" + p.name + "}"
	values, err := script.Run(ctx, p.fleet.client, []string{key}, rate, r.Tokens, r.Least, r.Covered.Milliseconds()).Slice()
	if err != nil {
		return lease.Answer{}, explained(err, key)
	}
	if len(values) != 2 {
		return lease.Answer{}, fmt.Errorf("redisbudget: the script returned %d values; want 2", len(values))
	}
	granted, _ := values[0].(int64)
	text, _ := values[1].(string)
	clients, err := strconv.ParseFloat(text, 64)
	if err != nil || granted < 0 || granted > max(r.Tokens, 0) || !(clients >= 0 && clients <= mostClients) { // NaN too
		return lease.Answer{}, fmt.Errorf("redisbudget: the script returned %v", values)
	}
	return lease.Answer{Tokens: granted, Clients: clients}, nil
}

// tell says once that the pool cannot be used, or for another reason than before, and once that it can.
func (p *pool) tell(err, before error) {
	switch {
	case err == nil && before == nil, err != nil && before != nil && adviceOn(err) == adviceOn(before):
		return
	case err == nil:
		p.log(slog.LevelInfo, "stagger: the pool is back")
	default:
		p.log(slog.LevelWarn, "stagger: the pool is away; what is leased is spent, then a share of the pool",
			slog.Float64("clients", p.lease.Clients()), slog.String("error", err.Error()))
	}
	p.fleet.changed(p.state())
}

func (p *pool) log(level slog.Level, message string, attributes ...slog.Attr) {
	p.fleet.logger.LogAttrs(context.Background(), level, message, append([]slog.Attr{slog.String("pool", p.name)}, attributes...)...)
}

func (p *pool) state() budget.PoolState {
	const token = 1e6
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.lease.Counts()
	return budget.PoolState{
		Name: p.name, PerSecond: p.perSecond, Clients: p.lease.Clients(), Balance: float64(p.lease.Balance(budget.Now())) / token,
		Asked: float64(counts.Asked) / token, Leased: float64(counts.Leased) / token, Denied: counts.Denied, Requests: counts.Requests, Err: p.err,
	}
}
