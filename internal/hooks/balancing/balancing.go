// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package balancing is what the core knows of package elsewhere, whose load balancing policy sends a retry to another backend: how a
// policy file names it, and the hook by which it learns which attempts belong to one call. The core imports this package, and a program
// imports package elsewhere.
package balancing

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
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

// packages has the load balancing policies that gRPC for Go and this module have, and what registers them: "" if package grpc does.
var packages = map[string]string{
	"pick_first":                     "",
	"round_robin":                    "",
	"weighted_round_robin":           "google.golang.org/grpc/balancer/weightedroundrobin",
	"least_request_experimental":     "google.golang.org/grpc/balancer/leastrequest",
	"random_subsetting_experimental": "google.golang.org/grpc/balancer/randomsubsetting",
	"ring_hash_experimental":         "google.golang.org/grpc/balancer/ringhash",
	"rls_experimental":               "google.golang.org/grpc/balancer/rls",
	"weighted_target_experimental":   "google.golang.org/grpc/balancer/weightedtarget",
	"grpclb":                         "google.golang.org/grpc/balancer/grpclb",
	"outlier_detection_experimental": "google.golang.org/grpc/xds",
	Policy:                           Package,
}

// Note says how connections get the file's load balancing.
const Note = "connections made with Retrier.DialOptions have it. It may connect to all backends, and it replaces a default service " +
	"config that comes before these options"

// Known reports whether gRPC for Go or this module has a load balancing policy of the name. gRPC ignores case.
func Known(name string) bool {
	_, known := packages[strings.ToLower(name)]
	return known
}

// Imported reports whether programs have a policy only if they import its package.
func Imported(name string) bool { return packages[strings.ToLower(name)] != "" }

// Nearest returns the word that resembles a word most, or "", as that of package document does.
type Nearest func(word string, words []string) string

// Near returns the policy of gRPC or this module that an unknown name resembles most, or "".
func Near(name string, nearest Nearest) string {
	if Known(name) {
		return ""
	}
	const suffix = "_experimental"
	full := map[string]string{}
	for known := range packages {
		full[strings.TrimSuffix(known, suffix)] = known
	}
	return full[nearest(strings.TrimSuffix(name, suffix), slices.Sorted(maps.Keys(full)))]
}

// Remedy says what to do if a program has none of these load balancing policies.
func Remedy(names []string, nearest Nearest) string {
	for _, name := range names {
		if Imported(name) {
			return fmt.Sprintf("import _ %q registers %s", packages[strings.ToLower(name)], name)
		}
		if near := Near(name, nearest); near != "" {
			return fmt.Sprintf("did you mean %s?", near)
		}
	}
	return "import the package that registers it"
}
