// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package balancing is what the core knows of package elsewhere, whose load balancing policy sends a retry to another backend: how a
// policy file names it, and the hook by which it learns which attempts belong to one call. The core imports this package, and a program
// imports package elsewhere.
package balancing

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"time"
)

const (
	// Policy is the name of the load balancing policy in a loadBalancingConfig.
	Policy = "stagger_retry_elsewhere"

	// Package is the import path of the package that registers the policy with gRPC.
	Package = "github.com/stagger-go/stagger/elsewhere"
)

// Hook is what the policy's builder in gRPC's registry implements: so importing the package is all that a program does.
type Hook interface {
	// NewContext returns a context for all attempts of one call.
	NewContext(parent context.Context) context.Context

	// LastPick returns whether the policy has picked a backend for the call whose context, or a parent of whose context, NewContext has
	// returned. downSince is the time since when the call's channel could not connect at the last pick; zero if it could.
	LastPick(ctx context.Context) (picked bool, downSince time.Time)

	// LastBackend returns the address of the last backend that the policy has picked for such a call, as the resolver names it, or nil.
	LastBackend(ctx context.Context) net.Addr
}

// Config returns the loadBalancingConfig of a service config in JSON, if it names [Policy] at any depth: a Retrier passes it to
// connections with its DialOptions. Otherwise it returns "", and the key is for gRPC alone.
func Config(serviceConfig string) string {
	var c struct {
		LoadBalancingConfig json.RawMessage `json:"loadBalancingConfig"`
	}
	var list any
	if json.Unmarshal([]byte(serviceConfig), &c) != nil || json.Unmarshal(c.LoadBalancingConfig, &list) != nil || !Named(list) {
		return ""
	}
	return string(c.LoadBalancingConfig)
}

// Named reports whether a loadBalancingConfig, as encoding/json decodes it, names [Policy] at any depth.
func Named(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == Policy || Named(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, Named)
	}
	return false
}
