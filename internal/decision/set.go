// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"

	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/lookup"
	"github.com/stagger-go/stagger/policy"
)

// Set is a [policy.Set], compiled. It never changes, and is safe for concurrent use.
type Set struct {
	*policy.Set

	config     policy.Config
	policies   []*Policy
	configured int // how many of the policies come from the config
	byPath     lookup.Table[Policy]
	reach      reach // of all calls
}

// Compile compiles the policies of a set.
func Compile(s *policy.Set) *Set {
	c := s.Config()
	compiled := &Set{Set: s, config: c, reach: reachOf(c.Mode, c.Percent)}
	for i, said := range s.Policies() {
		p := New(said.Spec())
		p.name, p.index = said.Name(), i
		compiled.policies = append(compiled.policies, p)
		compiled.byPath.Put(p.name, p)
	}
	for _, m := range c.Methods {
		compiled.configured += len(m.Names)
	}
	return compiled
}

// Config returns the set's config, as [policy.Set.Config] does. The caller must not change it, nor what it points to.
func (s *Set) Config() *policy.Config { return &s.config }

// Lookup returns the policy for a full method name, as [policy.Set.Lookup] does. It does not allocate.
func (s *Set) Lookup(method string) *Policy { return s.byPath.Find(method) }

// Policies returns the policies in the order of [policy.Set.Policies]. The caller must not change the list.
func (s *Set) Policies() []*Policy { return s.policies }

// Configured reports whether a policy of the set comes from its config, rather than from an API ([policy.Set.WithDescriptors]).
func (s *Set) Configured(p *Policy) bool {
	return p.index >= 0 && p.index < s.configured && s.policies[p.index] == p
}

// Mode returns the mode of all calls, whatever their policy. Policies may be stricter.
func (s *Set) Mode() policy.Mode { return s.reach.mode }

// Percent returns the share of all calls to which the mode applies, 0 to 100. Policies may have less.
func (s *Set) Percent() float64 { return s.reach.percent }

// ClientStreams reports whether descriptors show that the client of "/service/method" sends a stream. The attempts of such a
// call never run in parallel: a hedgingPolicy sends the next attempt after a failure, and perAttemptTimeout replaces the slow
// one.
func (s *Set) ClientStreams(method string) bool {
	m := inside.Method(s.Set, method)
	return m != nil && m.IsStreamingClient()
}

// LoadBalancing returns the file's loadBalancingConfig as JSON and its position, if it names the policy of package balancer.
// Otherwise config is "".
func (s *Set) LoadBalancing() (config string, at policy.Diagnostic) { return loadBalancing(s.Set) }

func loadBalancing(s *policy.Set) (config string, at policy.Diagnostic) {
	config, place := inside.LoadBalancing(s)
	at, _ = place.(policy.Diagnostic)
	return config, at
}

// Safe reports whether a policy, of this set or not, declares a method ("/service/method") idempotent, or leaves that to the
// method's descriptor, which declares it.
func (s *Set) Safe(p *Policy, method string) bool {
	switch p.spec.Idempotency {
	case policy.IdempotencyAssume:
		return true
	case policy.IdempotencyNone:
		return false
	default:
		return inside.DeclaredIdempotent(s.Set, method)
	}
}

// DeniesTransparentRetry reports whether gRPC itself must not retry calls of a method ("/service/method"): the policy, of this
// set or not, denies it, or the set does if the policy has no setting; and neither policy nor descriptor declares the method
// idempotent. A nil policy has no settings.
func (s *Set) DeniesTransparentRetry(p *Policy, method string) bool {
	if p == nil {
		return denies(s.config.TransparentRetry) && !inside.DeclaredIdempotent(s.Set, method)
	}
	return denies(cmp.Or(p.spec.TransparentRetry, s.config.TransparentRetry)) && p.spec.IdempotencyKey == "" && !s.Safe(p, method)
}

// DeniesRefusedRetry reports whether the trailer is ignored with which a server reports that it did not process a call: the
// policy, of this set or not, denies it, or the set does if the policy has no setting. A nil policy has no settings.
func (s *Set) DeniesRefusedRetry(p *Policy) bool {
	said := s.config.RefusedRetry
	if p != nil {
		said = cmp.Or(p.spec.RefusedRetry, said)
	}
	return denies(said)
}

func denies(permission *bool) bool { return permission != nil && !*permission }
