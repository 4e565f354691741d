// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"encoding/json"
	"fmt"
	"strings"

	lb "google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// importedElsewhere returns the hook of package elsewhere, or nil if the program does not import it.
func importedElsewhere() balancing.Hook {
	hook, _ := lb.Get(balancing.Policy).(balancing.Hook)
	return hook
}

// channel is what [Retrier.DialOptions] pass to gRPC of a file.
type channel struct {
	config   string              // a service config with the file's load balancing and health checks; "" if the file names no balancer
	key      string              // of the file, that names the load balancing
	list     string              // of load balancing policies
	note     policy.Diagnostic   // which of them connections have
	warnings []policy.Diagnostic // of what this program can't carry out
}

// newChannel reads the keys of a file that gRPC itself implements. If the file names load balancing in both ways, the list counts, as in
// gRPC, unless the program can't carry it out.
func newChannel(set *methods.Set) channel {
	text := set.Compiled().Channel()
	var file struct {
		Balancing json.RawMessage `json:"loadBalancingConfig"`
		Health    json.RawMessage `json:"healthCheckConfig"`
		Policy    string          `json:"loadBalancingPolicy"`
	}
	_ = json.Unmarshal([]byte(text), &file) // the set has encoded it
	c := channel{key: spec.BalancingKey}
	used := file.Balancing != nil && c.use(set, file.Balancing)
	if !used && file.Policy != "" {
		c.key = spec.BalancingPolicyKey
		used = c.use(set, fmt.Appendf(nil, `[{%q: {}}]`, file.Policy))
	}
	if used {
		c.config = `{"loadBalancingConfig": ` + c.list
		if file.Health != nil {
			c.config += `, "healthCheckConfig": ` + string(file.Health)
		}
		c.config += "}"
	}
	return c
}

// use reports whether the program can carry out a list of load balancing policies, and keeps it if so.
func (c *channel) use(set *methods.Set, list json.RawMessage) bool {
	at := set.Compiled().ChannelAt[c.key]
	used, err := parseBalancing(list)
	if err != nil {
		at.Message = "is left out, and connections have the load balancing of their other options: " + err.Error()
		c.warnings = append(c.warnings, at)
		return false
	}
	at.Value = used
	at.Message = balancing.Note
	c.list, c.note = string(list), at
	return true
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
		at := r.set.Compiled().ElsewhereAt
		at.Message = notImported
		return &policy.Error{Diagnostics: []policy.Diagnostic{at}}
	}
	_, err := parseBalancing([]byte(r.balancing))
	if err == nil {
		return nil
	}
	at := r.set.Compiled().ChannelAt[spec.BalancingKey]
	at.Message = err.Error()
	return &policy.Error{Diagnostics: []policy.Diagnostic{at}}
}

// parseBalancing reads a list of policies as gRPC does: the first one that is registered counts. It returns that one's name.
func parseBalancing(config []byte) (used string, err error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(config, &list); err != nil {
		return "", err
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
				return name, nil
			}
			if _, err := parser.ParseConfig(text); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			return name, nil
		}
	}
	return "", fmt.Errorf("the program has no policy %s; %s", strings.Join(unknown, ", "), balancing.Remedy(unknown, document.Nearest))
}

// warnBalancingChanged warns of a reload that changes load balancing, since only new connections apply it.
func (r *Retrier) warnBalancingChanged(before, after *rules) {
	if before.channel.config != after.channel.config {
		key := after.channel.key
		if before.channel.list == after.channel.list {
			key = spec.HealthKey
		}
		at := after.set.Compiled().ChannelAt[key]
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
		at := of.set.Compiled().ChannelAt[spec.BalancingKey]
		at.Value, at.Message = cc.Target(), otherBalancing.text
		return at
	})
}
