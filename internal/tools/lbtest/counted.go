// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lbtest

import (
	"encoding/json"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

// Picks counts what a counted policy's pickers did, of all connections.
type Picks struct {
	Picked atomic.Int64 // picks without an error
	Done   atomic.Int64 // of those, how many are done
	Failed atomic.Int64 // of those, how many with an error
	Twice  atomic.Int64 // times that Done was called again
}

// Count registers a policy "counted_NAME", which is the policy of that name with its picks counted. As all registration
// of policies, it is for initialization.
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
	}{}, nil // which a policy without a parser ignores
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
