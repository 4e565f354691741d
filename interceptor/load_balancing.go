// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	lb "google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/balancing"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
)

// importedElsewhere returns the hook of package elsewhere, or nil if the program does not import it.
func importedElsewhere() balancing.Hook {
	hook, _ := lb.Get(balancing.Policy).(balancing.Hook)
	return hook
}

// balancingOption returns the option that sets the file's load balancing policy, or nil if it does not name stagger_retry_elsewhere.
func (r *Retrier) balancingOption() grpc.DialOption {
	config := r.rules.Load().balancing
	if config == "" {
		return nil
	}
	return grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": ` + config + `}`)
}

const notImported = "the program does not have the load balancing policy " + balancing.Policy +
	`; add to its code: import _ "` + balancing.Package + `"`

// checkBalancing returns an error if the set names stagger_retry_elsewhere and the program does not import it, even if the list has another
// policy that gRPC would take instead; otherwise the error that gRPC would return when a connection is made.
func (r *rules) checkBalancing() error {
	if r.balancing == "" {
		return nil
	}
	if r.elsewhere == nil {
		at := inside.Elsewhere(r.set.Set)
		at.Message = notImported
		return &policy.Error{Diagnostics: []policy.Diagnostic{at}}
	}
	err := parseBalancing([]byte(r.balancing))
	if err == nil {
		return nil
	}
	_, at := r.set.Channel()
	at.Message = err.Error()
	return &policy.Error{Diagnostics: []policy.Diagnostic{at}}
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

// warnNotBalanced warns, once per target, that the call's connection does not have the file's load balancing policy: the call has sent an
// attempt, and the policy has not picked the attempt's backend.
func (c *call) warnNotBalanced() {
	of, cc := c.entry.rules, c.cc
	if cc == nil || c.options.maxAttempts < 2 || of.balancing == "" {
		return
	}
	if picked, _ := of.elsewhere.LastPick(c.ctx); picked {
		return
	}
	c.retrier.giveOnce(&otherBalancing, cc.Target(), func() policy.Diagnostic {
		_, at := of.set.Channel()
		at.Value, at.Message = cc.Target(), otherBalancing.text
		return at
	})
}
