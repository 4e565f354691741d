// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package balancer is a gRPC load balancing policy that sends a retry to another backend.
//
// With round_robin a retry may go to the backend that has just failed. With least_request that is likely, because a backend
// that fails fast looks idle. This policy wraps such a leaf policy, which still picks the backend of each attempt. For retries
// and hedges, the pick is repeated while it names a backend that the same call has used, even for an attempt that has ended. If
// the call has used all backends, the attempt goes to the one that it used longest ago.
//
// Package interceptor registers the policy by importing this one. A service config names it, and the leaf policy inside:
//
//	{"loadBalancingConfig": [{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}]}
//
// In a policy file, the same loadBalancingConfig is a top-level key, and interceptor.Retrier.DialOptions passes it to gRPC. As
// always in gRPC, a default service config (grpc.WithDefaultServiceConfig) applies only while the resolver delivers none. If
// older clients read the same config, list the leaf policy as the second entry, which they use:
//
//	[{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}, {"round_robin": {}}]
//
// The attempts of a call share a context, see [NewContext]; an interceptor.Retrier creates it. Without such a context, the leaf
// policy alone picks. A backend is a connection of the channel (balancer.SubConn). It is another one after a change of policy,
// or after the resolver has removed it and added it again.
//
// The child must be a policy that itself picks among backends, such as round_robin, least_request_experimental or
// weighted_round_robin. A policy that wraps others is refused: outlier detection would count the picks that a retry skips as
// successes, so put this policy inside it. If all picks of a call name the same backend, as with pick_first, a single address or
// ring_hash by a header, this policy has no effect. docs/retry-elsewhere.md has more.
package balancer

import (
	"google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/tried"
)

// Name is the policy's name in a service config.
const Name = tried.Balancer

func init() { balancer.Register(builder{}) }

// builder builds the policies of channels. Its ParseConfig is in config.go.
type builder struct{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, options balancer.BuildOptions) balancer.Balancer {
	target := cc.Target() // as written by the application; the target in options is the parsed one
	return &policy{cc: cc, options: options, channel: tried.Use(target)}
}
