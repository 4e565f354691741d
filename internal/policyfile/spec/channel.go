// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// oneBalancing is the message for an invalid entry in a list of load balancing policies.
const oneBalancing = "must be a map with one key, a load balancing policy, such as {round_robin: {}}"

// channel has the features that gRPC itself implements, as encoding/json decodes them.
type channel struct {
	policy          string
	balancing       []any
	health, scaling map[string]any
}

// Channel returns the keys that gRPC itself implements, such as loadBalancingConfig, as a service config in JSON.
func (c *Config) Channel() string { return c.channel.text() }

func (c *channel) text() string {
	keys := map[string]any{}
	if c.policy != "" {
		keys[BalancingPolicyKey] = c.policy
	}
	if len(c.balancing) > 0 {
		keys[BalancingKey] = c.balancing
	}
	if c.health != nil { // {} asks for the health of the whole server
		keys[HealthKey] = c.health
	}
	if len(c.scaling) > 0 {
		keys["connectionScaling"] = c.scaling
	}
	text, _ := json.Marshal(keys) // what was decoded can be encoded
	return string(text)
}

func (c *channel) read(f *document.Fields) {
	if n, path := f.Value(BalancingKey); n != nil {
		switch {
		case n.Kind == document.Text:
			f.Misfit(path, n, "must be a list of policies, such as [{"+cmp.Or(document.Shorten(n.Text), "round_robin")+": {}}]")
		case n.Kind != document.List:
			f.Misfit(path, n, "must be a list")
		default:
			c.balancing, _ = f.Plain(path, n).([]any)
		}
	}
	readMap(f, HealthKey, &c.health)
	readMap(f, "connectionScaling", &c.scaling)
}

// Elsewhere returns the field of the first load balancing policy that is stagger_retry_elsewhere or has it inside; that of the list if
// there is none.
func (c *Config) Elsewhere() string {
	if i := slices.IndexFunc(c.channel.balancing, balancing.Named); i >= 0 {
		return document.Item(BalancingKey, i)
	}
	return BalancingKey
}

func readMap(f *document.Fields, key string, to *map[string]any) {
	n, path := f.Value(key)
	if n != nil && n.Kind != document.Object {
		f.Misfit(path, n, "must be a map")
	} else if n != nil {
		*to, _ = f.Plain(path, n).(map[string]any)
	}
}

// check refuses what gRPC refuses in its own keys: the file is also for gRPC.
func (c *channel) check(report *document.Report) {
	if c.balancing != nil && len(c.balancing) == 0 {
		report.Errorf(BalancingKey, nil, "must list a load balancing policy, such as [{round_robin: {}}], or be left out: "+
			"gRPC refuses a file with an empty list")
	}
	for i, one := range c.balancing {
		field := document.Item(BalancingKey, i)
		entry, _ := one.(map[string]any)
		if len(entry) != 1 {
			report.Errorf(field, nil, oneBalancing)
			continue
		}
		for name, config := range entry {
			if _, ok := config.(map[string]any); !ok {
				report.Errorf(document.Under(field, name), nil, "must be a map of the policy's settings; {} for none")
			}
		}
	}
	if name, ok := c.health["serviceName"].(string); !ok && c.health["serviceName"] != nil {
		const field = HealthKey + ".serviceName"
		report.Errorf(field, name, "must be the name of the service that is asked for its health%s", document.Quotes(report.Node(field)))
	}
}

// The keys of the policy file that name a load balancing policy, and what it asks of backends.
const (
	BalancingKey       = "loadBalancingConfig"
	BalancingPolicyKey = "loadBalancingPolicy"
	HealthKey          = "healthCheckConfig"
)

// warnNotDone warns of parts of a config that have no effect here.
func (c *channel) warnNotDone(report *document.Report) {
	if c.health != nil && len(c.balancing) == 0 && c.policy == "" {
		report.Warnf(HealthKey, nil, "has no effect without loadBalancingConfig, such as [{round_robin: {}}]: gRPC's usual load balancing, "+
			"pick_first, asks no server for its health")
	}
	if len(c.scaling) > 0 {
		report.Warnf("connectionScaling", nil, "belongs to the channel and has no effect here: gRPC for Go does not have it")
	}
}
