// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"
)

// config is a parsed config of the policy.
type config struct {
	serviceconfig.LoadBalancingConfig

	child       balancer.Builder
	childConfig serviceconfig.LoadBalancingConfig // nil if the child has none
}

// ParseConfig parses {"childPolicy": [{"round_robin": {}}]}. As in gRPC, it uses the first registered policy of the list, and
// ignores unknown keys.
func (builder) ParseConfig(text json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	var read struct {
		ChildPolicy []map[string]json.RawMessage `json:"childPolicy"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("%w; want %s", err, wanted)
	}
	if len(read.ChildPolicy) == 0 {
		return nil, fmt.Errorf("childPolicy is missing; want %s", wanted)
	}
	var unknown []string
	for i, entry := range read.ChildPolicy {
		if len(entry) != 1 {
			return nil, fmt.Errorf("childPolicy[%d] has %d keys; want one, the name of a policy", i, len(entry))
		}
		for name, text := range entry {
			if b := balancer.Get(name); b != nil {
				return parseChild(i, b, text)
			}
			unknown = append(unknown, name)
		}
	}
	return nil, fmt.Errorf("childPolicy: the program has no policy %s; import the package that registers it, or add round_robin to the list",
		strings.Join(unknown, ", "))
}

const wanted = `{"childPolicy": [{"round_robin": {}}]}, or another leaf policy in its place`

func parseChild(i int, b balancer.Builder, text json.RawMessage) (*config, error) {
	if err := checkLeaf(b.Name(), text); err != nil {
		return nil, fmt.Errorf("childPolicy[%d]: %w", i, err)
	}
	parser, ok := b.(balancer.ConfigParser)
	if !ok {
		return &config{child: b}, nil
	}
	parsed, err := parser.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("childPolicy[%d].%s: %w", i, b.Name(), err)
	}
	return &config{child: b, childConfig: parsed}, nil
}

// notLeaf explains why some policies can't be children: they wrap others, or count drops.
var notLeaf = map[string]string{
	"outlier_detection_experimental": "it would count the picks that a retry passes over as successes, and eject no backend",
	"xds_cluster_impl_experimental":  "it would count the picks that a retry passes over as requests, and drop too many",
	"grpclb":                         "it would report the picks that a retry passes over to its remote balancer",
	"cds_experimental":               otherPolicies,
	"priority_experimental":          otherPolicies,
}

const otherPolicies = "it is a policy around other policies, which would count the picks that a retry passes over as requests"

// checkLeaf refuses policies that wrap others: gRPC's by name, all others by their key childPolicy.
func checkLeaf(name string, text json.RawMessage) error {
	reason := notLeaf[name]
	if reason == "" {
		var read any
		if json.Unmarshal(text, &read) == nil && hasChildPolicy(read) { // the child's parser reports invalid JSON
			reason = otherPolicies
		}
	}
	if reason == "" {
		return nil
	}
	return fmt.Errorf("%s must not be inside of %s: %s; put %[2]s inside of it, around the leaf policy", name, Name, reason)
}

// hasChildPolicy searches for the key at any depth, ignoring case, as encoding/json does.
func hasChildPolicy(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if strings.EqualFold(key, "childPolicy") || hasChildPolicy(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasChildPolicy)
	}
	return false
}
