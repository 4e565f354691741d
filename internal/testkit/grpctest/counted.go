// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package grpctest

import (
	"encoding/json"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

// Picks counts what the pickers of a counted policy did, on all connections.
type Picks struct {
	Picked atomic.Int64 // picks without an error
	Done   atomic.Int64 // of those, completed
	Failed atomic.Int64 // of those, completed with an error
	Twice  atomic.Int64 // repeated calls of Done
}

// Count registers a policy "counted_NAME", which wraps the policy of that name and counts its picks. Like all registration
// of policies, it must run during initialization.
func Count(name string) *Picks {
	picks := &Picks{}
	balancer.Register(countedBuilder{name, picks})
	return picks
}

type countedBuilder struct {
	name  string
	picks *Picks
}

func (b countedBuilder) Name() string { return "counted_" + b.name }

func (b countedBuilder) Build(cc balancer.ClientConn, options balancer.BuildOptions) balancer.Balancer {
	return balancer.Get(b.name).Build(&countedConn{cc, b.picks}, options)
}

func (b countedBuilder) ParseConfig(text json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	if parser, ok := balancer.Get(b.name).(balancer.ConfigParser); ok {
		return parser.ParseConfig(text)
	}
	return struct {
		serviceconfig.LoadBalancingConfig
	}{}, nil // a policy without a parser ignores it
}

type countedConn struct {
	balancer.ClientConn
	picks *Picks
}

func (c *countedConn) UpdateState(state balancer.State) {
	state.Picker = countedPicker{state.Picker, c.picks}
	c.ClientConn.UpdateState(state)
}

type countedPicker struct {
	inner balancer.Picker
	picks *Picks
}

func (p countedPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.inner.Pick(info)
	if err != nil {
		return result, err
	}
	p.picks.Picked.Add(1)
	done := result.Done
	var times atomic.Int32
	result.Done = func(info balancer.DoneInfo) {
		if times.Add(1) > 1 {
			p.picks.Twice.Add(1)
			return
		}
		p.picks.Done.Add(1)
		if info.Err != nil {
			p.picks.Failed.Add(1)
		}
		if done != nil {
			done(info)
		}
	}
	return result, nil
}
