// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

// longestRequest bounds a request. It leaves half of a lease's time to a grant that arrives late.
const longestRequest = Length / 2

// mostClients bounds the number of clients. With a bogus number in the pool, clients would ask all the time or never.
const mostClients = 1e9

// Pools are the leases of one client. They ask a fleet for tokens. The methods are safe for concurrent use.
type Pools struct {
	fleet   budget.Fleet
	changed func(State)
	start   func(*pool) // its goroutine, until Close
	cancel  context.CancelFunc

	mu    sync.Mutex // guards pools
	pools map[string]*pool
}

// State is a reading of a pool, as one client sees it. It counts extra attempts of cost 1.
type State struct {
	Name      string
	PerSecond float64
	Clients   float64
	Balance   float64
	Asked     float64
	Leased    float64
	Denied    uint64
	Requests  uint64
	Err       error
}

// NewPools returns empty leases. It calls changed in a goroutine of a pool when the pool becomes unavailable, and when it is
// back.
func NewPools(fleet budget.Fleet, changed func(State)) *Pools {
	p := &Pools{fleet: fleet, changed: changed, pools: map[string]*pool{}}
	ctx, cancel := context.WithCancel(context.Background())
	p.start, p.cancel = func(one *pool) { go one.keepAsking(ctx) }, cancel
	return p
}

// Lease returns the lease of a pool, and sets its rate. The first call for a pool starts its goroutine.
func (p *Pools) Lease(name string, perSecond float64) (balance.Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, known := p.pools[name]
	if !known {
		one = newPool(p, name)
		p.pools[name] = one
	}
	one.setRate(perSecond)
	if !known { // after the rate, because a request with rate 0 would cut the pool to the smallest capacity
		p.start(one)
	}
	return one.lease, nil
}

// Close ends the goroutines. Leases are not spent any more, and expire.
func (p *Pools) Close() {
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.pools {
		one.lease.End()
	}
}

// States reads the pools, by name.
func (p *Pools) States() []State {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]State, 0, len(p.pools))
	for _, one := range p.pools {
		list = append(list, one.state())
	}
	slices.SortFunc(list, func(a, b State) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// pool asks the fleet for a lease's tokens, in its own goroutine.
type pool struct {
	of    *Pools
	name  string
	lease *Lease
	woken chan struct{}

	mu        sync.Mutex // guards all below
	perSecond float64
	err       error // of the last request
}

func newPool(of *Pools, name string) *pool {
	p := &pool{of: of, name: name, woken: make(chan struct{}, 1)}
	p.lease = New(0, clock.Now(), func() {
		select {
		case p.woken <- struct{}{}:
		default: // it will look at it anyway
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

// keepAsking asks until the Pools are closed.
func (p *pool) keepAsking(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		r, at, ok := p.lease.Next(clock.Now())
		if ok {
			p.exchange(ctx, r)
			continue
		}
		timer.Reset(at - clock.Now())
		select {
		case <-timer.C:
		case <-p.woken:
		case <-ctx.Done():
		}
	}
}

// exchange makes one request, and reports the answer to the lease. It reports each change once.
func (p *pool) exchange(ctx context.Context, r Request) {
	a, err := p.draw(ctx, r)
	switch {
	case ctx.Err() != nil:
		return // closed meanwhile
	case err != nil:
		p.lease.Failed(clock.Now())
	default:
		p.lease.Answered(clock.Now(), r, a)
	}
	p.mu.Lock()
	before := p.err
	p.err = err
	p.mu.Unlock()
	if (err == nil) != (before == nil) {
		p.of.changed(p.state())
	}
}

// draw makes the request. An impossible answer is an error. So is a panic, which would end the process.
func (p *pool) draw(ctx context.Context, r Request) (_ Answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("budget: the fleet panics: %v", v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, longestRequest)
	defer cancel()
	p.mu.Lock()
	perSecond := p.perSecond
	p.mu.Unlock()
	tokens, clients, err := p.of.fleet.Draw(ctx, budget.PoolRequest{
		Pool: p.name, PerSecond: perSecond, Tokens: r.Tokens, Least: r.Least, Covered: r.Covered,
	})
	if err == nil && (tokens < 0 || tokens > 0 && tokens < r.Least || tokens > max(r.Tokens, 0) || !(clients >= 0 && clients <= mostClients)) { // NaN too
		err = fmt.Errorf("budget: the fleet answered %d tokens of %d, at least %d, and %v clients", tokens, r.Tokens, r.Least, clients)
	}
	return Answer{Tokens: tokens, Clients: clients}, err
}

func (p *pool) state() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.lease.Counts()
	return State{
		Name: p.name, PerSecond: p.perSecond, Clients: p.lease.Clients(), Balance: float64(p.lease.Balance(clock.Now())) / token,
		Asked: float64(counts.Asked) / token, Leased: float64(counts.Leased) / token, Denied: counts.Denied, Requests: counts.Requests, Err: p.err,
	}
}
