// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	lb "google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/balancer"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tried"
	"github.com/stagger-go/stagger/policy"
)

// balancingOption returns the option that sets the file's load balancing policy, or nil if it does not name stagger_retry_elsewhere.
func (r *Retrier) balancingOption() grpc.DialOption {
	config := r.rules.Load().balancing
	if config == "" {
		return nil
	}
	return grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": ` + config + `}`)
}

// checkBalancing returns the error that gRPC would return when a connection is made.
func checkBalancing(set *decision.Set) error {
	channel, at := set.Channel()
	config := tried.Config(channel)
	if config == "" {
		return nil
	}
	if err := parseBalancing([]byte(config)); err != nil {
		at.Message = err.Error()
		return &policy.Error{Diagnostics: []policy.Diagnostic{at}}
	}
	return nil
}

// parseBalancing reads a list of policies as gRPC does: the first one that is registered counts.
func parseBalancing(config []byte) error {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(config, &list); err != nil {
		return err
	}
	var unknown []string
	for _, entry := range list {
		for name, text := range entry { // exactly one, by the check of the file
			b := lb.Get(name)
			if b == nil {
				unknown = append(unknown, name)
				continue
			}
			parser, ok := b.(lb.ConfigParser)
			if !ok {
				return nil
			}
			if _, err := parser.ParseConfig(text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("the program has no policy %s; import the package that registers it", strings.Join(unknown, ", "))
}

// warnBalancingChanged warns of a reload that changes load balancing, since only new connections apply it.
func (r *Retrier) warnBalancingChanged(before, after *rules) {
	if before.balancing != after.balancing {
		_, at := after.set.Channel()
		at.Message = "has changed: connections keep the load balancing that they were made with; those made with Retrier.DialOptions from now on have the new one"
		r.warn(at)
	}
}

// warnNotBalanced warns, once per target, that the call's connection does not have the file's load balancing policy.
// Calls use it only after a failed attempt; sent says that the attempt had a backend.
func (c *call) warnNotBalanced(sent bool) {
	r, cc := c.retrier, c.cc
	if cc == nil || r.rules.Load().balancing == "" || cc.GetState() != connectivity.Ready {
		return
	}
	if tried.InUse(cc.Target()) && (!sent || !balancer.Unasked(c.ctx)) { // else only another connection to the target uses it
		return
	}
	r.giveOnce(&otherBalancing, cc.Target(), func() policy.Diagnostic {
		_, at := r.rules.Load().set.Channel()
		at.Value, at.Message = cc.Target(), otherBalancing.text
		return at
	})
}
