// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// NoPolicy is the name that means one attempt in a [Variant]'s policies.
const NoPolicy = "NONE"

// policyOf is the policy that the calls of a fleet or a service follow in the variant.
func (v *Variant) policyOf(from, own string) string {
	if name, ok := v.Policies[from]; ok {
		return name
	}
	return cmp.Or(v.All, own)
}

// methodOf is the method that the calls of a fleet or a service have in the variant.
func (v *Variant) methodOf(from, own string) string {
	if _, named := v.Policies[from]; named || v.All == "" {
		return own
	}
	return cmp.Or(v.Method, own)
}

// With returns the scenario with one more variant, in which all calls that follow a policy follow this one
// instead: as calls of method ("/package.Service/Method"), or of their own methods if it is "". A scenario
// without variants gets one for how it was, too. The error says which call the policy has nothing to say of.
func (s *Scenario) With(name string, set *policy.Set, method string) (*Scenario, error) {
	more := *s
	more.Policies = maps.Clone(s.Policies)
	more.Policies[name] = &Policy{Set: decision.Compile(set), File: name}
	more.Variants = slices.Clone(s.Variants)
	if len(more.Variants) == 0 {
		more.Variants = []Variant{{Name: "as the scenario says"}}
	}
	v := Variant{Name: name, Policies: map[string]string{}, All: name, Method: method}
	check := func(from string, c *Call) error {
		if c.Policy == "" || c.Policy == NoPolicy {
			v.Policies[from] = NoPolicy
			return nil
		}
		return fits(name, set, cmp.Or(method, c.Method))
	}
	for i := range s.Services {
		for k := range s.Services[i].Calls {
			if err := check(s.Services[i].Name, &s.Services[i].Calls[k]); err != nil {
				return nil, err
			}
		}
	}
	for i := range s.Fleets {
		for k := range s.Fleets[i].Calls {
			if err := check(s.Fleets[i].Name, &s.Fleets[i].Calls[k]); err != nil {
				return nil, err
			}
		}
	}
	more.Variants = append(more.Variants, v)
	return &more, nil
}

// fits reports why a policy cannot be played for a method.
func fits(name string, set *policy.Set, method string) error {
	p := set.Lookup(method)
	if p == nil {
		return fmt.Errorf("%s: has no entry for the method %s of the scenario's calls; name one that it has", name, method)
	}
	if h := p.Spec().Hedge; h != nil && h.Quantile != nil {
		return fmt.Errorf("%s: the entry for %s has a hedgingQuantile, which is not simulated; use a hedgingDelay", name, method)
	}
	return nil
}
