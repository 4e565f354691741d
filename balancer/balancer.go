// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package balancer is a gRPC load balancing policy that sends a retry to another backend.
//
// With round_robin a retry may go to the backend that has just failed; with least_request it is likely to, since
// what fails fast looks idle. This policy stands around such a leaf policy. The leaf policy picks the backend of an
// attempt as before; but for retries and hedges a pick is repeated while it names a backend that the same call went
// to, whether that attempt has ended or still runs. When the call went to all of them, the attempt goes to the one
// that it used longest ago.
//
// The policy is registered when the package is imported. A service config names it, and the leaf policy inside:
//
//	{"loadBalancingConfig": [{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}]}
//
// In a policy file the same loadBalancingConfig stands at the top, and interceptor.Retrier.DialOptions brings it. As
// everywhere in gRPC, a default service config (grpc.WithDefaultServiceConfig) holds only while the resolver
// delivers none. Where older clients read the same config, the leaf policy goes behind it, and they take that one:
//
//	[{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}, {"round_robin": {}}]
//
// # Which attempts belong together
//
// The policy knows the attempts of a call by their context, see [NewContext]; an interceptor.Retrier makes it. A call
// without such a context is balanced by the leaf policy alone. A retry that gRPC makes by itself, unseen by interceptors, goes elsewhere too.
//
// A backend is a connection of the channel (balancer.SubConn), as picked by the leaf policy. It stays the same when
// the connection breaks and is made again to the same address; it is another one after a change of policy, or when the
// resolver leaves it out and brings it back.
//
// # Which child policies
//
// round_robin, least_request_experimental, weighted_round_robin, and others that choose among backends themselves. A
// policy around other policies is refused as a child, outlier detection above all: it would count the picks that a
// retry passes over as successes, and eject nothing. Put this policy inside of it. It is of no use, and does
// no harm, where each pick of a call names the same backend: pick_first, a single address, ring_hash by a header.
package balancer

import (
	"sync"

	"google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/tried"
)

// Name is the policy's name in a service config.
const Name = tried.Balancer

func init() { balancer.Register(builder{}) }

// builder makes the policies of channels. Its ParseConfig stands in config.go.
type builder struct{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, options balancer.BuildOptions) balancer.Balancer {
	target := cc.Target() // as the application wrote it; that of the options is spelled out
	targets.add(target)
	return &policy{cc: cc, options: options, left: sync.OnceFunc(func() { targets.remove(target) })}
}
