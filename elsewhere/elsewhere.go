// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package elsewhere is a gRPC load balancing policy that sends a retry to another backend. Add it to a connection with an option:
//
//	conn, err := grpc.NewClient(target, append(retrier.DialOptions(), elsewhere.DialOption(),
//		grpc.WithTransportCredentials(creds))...)
//
// or import the package, and name the policy in the policy file or service config:
//
//	import _ "github.com/stagger-go/stagger/elsewhere"
//
//	{"loadBalancingConfig": [{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}]}
//
// With round_robin a retry may go to the backend that has just failed. With least_request that is likely, because a backend
// that fails fast looks idle. This policy wraps such a leaf policy, which still picks the backend of each attempt. For a retry or hedge,
// the leaf policy picks as many times as there are backends, and the attempt uses a random one of these picks whose backend the same call
// has not used, even for an attempt that has ended: backends that fail together, such as those of a zone, often follow each other in the
// list. If the call has used all backends, the attempt goes to the one that it used longest ago.
//
// # Which connections have it
//
// In a policy file, loadBalancingConfig is a top-level key, and interceptor.Retrier.DialOptions passes it to gRPC if it names this policy.
// DialOption and the file give the connection a default service config (grpc.WithDefaultServiceConfig). As always in gRPC, it applies only
// while the resolver delivers no service config, and the last of several options applies. If clients without stagger read the same config,
// list the leaf policy as the second entry, for them:
//
//	[{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}, {"round_robin": {}}]
//
// # Calls and backends
//
// The attempts of a call share a context. In a program that imports this package, a Retrier creates one for each call that may have several
// attempts; other interceptors that retry use [NewContext]. Without such a context, the leaf policy alone picks. A backend is a connection
// of the channel (balancer.SubConn). After a change of policy, or if the resolver removes a backend and adds it again, it counts as another
// backend.
//
// # Leaf policies
//
// The child must be a policy that itself picks among backends, such as round_robin, least_request_experimental or weighted_round_robin. A
// policy that wraps others is refused: outlier detection, for example, would count the picks that a retry skips as successes. Put this
// policy inside it. If all picks of a call name the same backend, as with pick_first, a single address or ring_hash by a header, this
// policy has no effect. docs/one-backend.md has more.
package elsewhere

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin" // the child of DialOption

	"github.com/stagger-go/stagger/internal/hooks/balancing"
)

// Name is the policy's name in a service config.
const Name = balancing.Policy

func init() { balancer.Register(builder{}) }

// builder builds the policies of channels. Its ParseConfig is in config.go; record.go has what it does for a Retrier.
type builder struct{}

var _ balancing.Hook = builder{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, options balancer.BuildOptions) balancer.Balancer {
	return &policy{cc: cc, options: options}
}

// DialOption returns a default service config (grpc.WithDefaultServiceConfig) with this policy around round_robin, and nothing else. gRPC
// uses only the last default service config that it is given: for another leaf policy, or with other keys, write one that names this
// policy. A service config from the resolver replaces it, unless grpc.WithDisableServiceConfig is given.
func DialOption() grpc.DialOption {
	return grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + Name + `": {"childPolicy": [{"round_robin": {}}]}}]}`)
}
