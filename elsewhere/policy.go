// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// policy passes gRPC's calls to its child policy, and wraps the child's pickers in a [picker]. When the config names another
// child, both run until the new one can serve or the old one can't, as gRPC does for a channel's policy.
//
//	           config names another child
//	┌─────────┐ ────────────────────────► ┌───────────────────┐ ──┐ config names a third:
//	│ current │                           │ current + pending │   │ it replaces pending
//	└─────────┘ ◄──────────────────────── └───────────────────┘ ◄─┘
//	     pending leaves CONNECTING or current leaves READY:
//	     pending becomes current, the old current is retired
//
// gRPC calls a policy and the listeners of its SubConns one at a time. A child may report its state at any time, even while it
// holds its own locks. So the next call of gRPC closes a retired child.
type policy struct {
	cc      balancer.ClientConn
	options balancer.BuildOptions

	mu      sync.Mutex // held while state is passed on, so that the last is the newest; never while a child is called
	down    time.Time  // since when the channel can't connect; zero if it can, or has not tried
	current *child     // nil before the first config, and after Close
	pending *child     // nil except during a change of child
	retired []*child
}

// UpdateClientConnState implements balancer.Balancer.
func (p *policy) UpdateClientConnState(state balancer.ClientConnState) error {
	defer p.closeRetired()
	cfg, ok := state.BalancerConfig.(*config)
	if !ok {
		return fmt.Errorf("%s: config is a %T; want what ParseConfig has returned", Name, state.BalancerConfig)
	}
	c := p.latest()
	if c == nil || c.name != cfg.child.Name() {
		c = p.start(cfg.child)
	}
	state.BalancerConfig = cfg.childConfig
	return c.balancer.UpdateClientConnState(state)
}

// start builds a child: the current one if it is the first, else the pending one. The child may report its state while it is
// built.
func (p *policy) start(b balancer.Builder) *child {
	c := &child{
		ClientConn: p.cc, policy: p, name: b.Name(),
		subConns: map[balancer.SubConn]connectivity.State{}, addresses: map[balancer.SubConn]string{},
		state: balancer.State{
			ConnectivityState: connectivity.Connecting,
			Picker:            base.NewErrPicker(balancer.ErrNoSubConnAvailable),
		},
	}
	p.mu.Lock()
	if p.current == nil {
		p.current = c
	} else {
		p.retire(p.pending)
		p.pending = c
	}
	p.mu.Unlock()
	c.balancer = b.Build(c, p.options)
	return c
}

// ResolverError implements balancer.Balancer.
func (p *policy) ResolverError(err error) {
	defer p.closeRetired()
	if c := p.latest(); c != nil {
		c.balancer.ResolverError(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: base.NewErrPicker(err)}, 0)
}

// report passes the channel's state to gRPC, with a picker that tells calls since when the channel can't connect. ready is the
// number of backends that it picks from. p.mu must be held.
func (p *policy) report(state balancer.State, ready int) {
	switch {
	case state.ConnectivityState == connectivity.Connecting: // again, or for the first time
	case state.ConnectivityState != connectivity.TransientFailure:
		p.down = time.Time{}
	case p.down.IsZero():
		p.down = time.Now()
	}
	if state.Picker != nil {
		state.Picker = &picker{child: state.Picker, ready: ready, down: p.down, of: p}
	}
	p.cc.UpdateState(state)
}

// UpdateSubConnState implements balancer.Balancer. gRPC does not call it, because each SubConn has a listener.
func (*policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle implements balancer.Balancer.
func (p *policy) ExitIdle() {
	defer p.closeRetired()
	if c := p.latest(); c != nil {
		c.balancer.ExitIdle()
	}
}

// Close implements balancer.Balancer.
func (p *policy) Close() {
	p.mu.Lock()
	p.retire(p.current)
	p.retire(p.pending)
	p.current, p.pending = nil, nil
	p.mu.Unlock()
	p.closeRetired()
}

// latest returns the child that the last config named, or nil.
func (p *policy) latest() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending != nil {
		return p.pending
	}
	return p.current
}

// retire schedules c, which may be nil, for closing. p.mu must be held.
func (p *policy) retire(c *child) {
	if c != nil {
		c.retired = true
		p.retired = append(p.retired, c)
	}
}

func (p *policy) closeRetired() {
	p.mu.Lock()
	retired := p.retired
	p.retired = nil
	p.mu.Unlock()
	for _, c := range retired {
		c.close()
	}
}

// child is a child policy and its ClientConn.
type child struct {
	balancer.ClientConn

	policy   *policy
	name     string
	balancer balancer.Balancer

	// Guarded by the policy's lock:
	state    balancer.State
	retired  bool
	subConns map[balancer.SubConn]connectivity.State
	// addresses has the first address of each SubConn, as policies that pick from several backends make them.
	addresses map[balancer.SubConn]string
	ready     int // how many backends are READY
}

// UpdateState implements balancer.ClientConn.
func (c *child) UpdateState(state balancer.State) {
	p := c.policy
	p.mu.Lock()
	defer p.mu.Unlock()
	c.state = state
	ready := state.ConnectivityState == connectivity.Ready
	switch {
	case c.retired:
	case c == p.current && (ready || p.pending == nil):
		c.pass()
	case c == p.current, p.current.state.ConnectivityState != connectivity.Ready,
		state.ConnectivityState != connectivity.Connecting:
		p.retire(p.current)
		p.current, p.pending = p.pending, nil
		p.current.pass()
	}
}

// pass passes the child's state to gRPC. The policy's lock must be held.
func (c *child) pass() {
	c.policy.report(c.state, c.ready)
}

// NewSubConn implements balancer.ClientConn. It follows the SubConn's state, and shuts the SubConn down with the child, as gRPC
// does with a policy that it made.
func (c *child) NewSubConn(addrs []resolver.Address, options balancer.NewSubConnOptions) (balancer.SubConn, error) {
	var sc balancer.SubConn
	listener := options.StateListener
	options.StateListener = func(state balancer.SubConnState) {
		defer c.policy.closeRetired()
		if !c.note(sc, state.ConnectivityState) {
			return
		}
		if listener == nil {
			c.balancer.UpdateSubConnState(sc, state) // as gRPC does with policies without listeners
			return
		}
		listener(state)
	}
	sc, err := c.ClientConn.NewSubConn(addrs, options)
	if err != nil {
		return nil, err
	}
	if len(addrs) > 0 {
		c.policy.mu.Lock()
		c.addresses[sc] = addrs[0].Addr
		c.policy.mu.Unlock()
	}
	if !c.note(sc, connectivity.Idle) {
		sc.Shutdown()
		return nil, fmt.Errorf("%s: child policy %s is closed", Name, c.name)
	}
	return sc, nil
}

// note records a SubConn's state. It returns false if the child is retired and must not be told.
func (c *child) note(sc balancer.SubConn, state connectivity.State) bool {
	c.policy.mu.Lock()
	defer c.policy.mu.Unlock()
	if c.subConns[sc] == connectivity.Ready {
		c.ready--
	}
	if state == connectivity.Ready {
		c.ready++
	}
	c.subConns[sc] = state
	if state == connectivity.Shutdown {
		delete(c.subConns, sc)
		delete(c.addresses, sc)
	}
	return !c.retired
}

// addressOf returns the address of a SubConn, or "" if it is gone.
func (p *policy) addressOf(sc balancer.SubConn) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []*child{p.current, p.pending} {
		if c != nil && c.addresses[sc] != "" {
			return c.addresses[sc]
		}
	}
	return ""
}

// close closes the child and its open SubConns.
func (c *child) close() {
	c.balancer.Close()
	c.policy.mu.Lock()
	left := slices.Collect(maps.Keys(c.subConns))
	c.policy.mu.Unlock()
	for _, sc := range left {
		sc.Shutdown()
	}
}
