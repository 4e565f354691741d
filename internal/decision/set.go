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
	configured int // of the policies, those that come from the config
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

// Config is what the set was made of, as [policy.Set.Config] has it; the caller must not change it, nor what it points to.
func (s *Set) Config() *policy.Config { return &s.config }

// Lookup finds the policy for a full method name, as [policy.Set.Lookup] does. It does not allocate.
func (s *Set) Lookup(method string) *Policy { return s.byPath.Find(method) }

// Policies are the policies in the order of [policy.Set.Policies]; the caller must not change the list.
func (s *Set) Policies() []*Policy { return s.policies }

// Configured reports whether a policy of the set comes from its config, and not with an API
// ([policy.Set.WithDescriptors]).
func (s *Set) Configured(p *Policy) bool {
	return p.index >= 0 && p.index < s.configured && s.policies[p.index] == p
}

// Mode is what becomes of the extra attempts of all calls, whatever policy they have. Policies may be stricter.
func (s *Set) Mode() policy.Mode { return s.reach.mode }

// Percent is the share of all calls that the mode is for, 0 to 100. Policies may have less.
func (s *Set) Percent() float64 { return s.reach.percent }

// ClientStreams reports whether the client of "/service/method" sends a stream, as far as descriptors know the
// method. The attempts of such a call never run in parallel: a hedgingPolicy sends the next attempt after a failure,
// and perAttemptTimeout sends it in place of the slow one.
func (s *Set) ClientStreams(method string) bool {
	m := inside.Method(s.Set, method)
	return m != nil && m.IsStreamingClient()
}

// LoadBalancing is the loadBalancingConfig of the file as JSON, if it names the policy of package balancer, and where it
// stands; else config is "".
func (s *Set) LoadBalancing() (config string, at policy.Diagnostic) { return loadBalancing(s.Set) }

func loadBalancing(s *policy.Set) (config string, at policy.Diagnostic) {
	config, place := inside.LoadBalancing(s)
	at, _ = place.(policy.Diagnostic)
	return config, at
}

// Safe reports whether a policy, of this set or not, declares a method ("/service/method") safe to repeat,
// or leaves it to the method's descriptor and that declares it.
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

// DeniesTransparentRetry reports whether gRPC may not send a call of a method ("/service/method") once more by
// itself: the policy, of this set or not, says so, or the set where the policy says nothing; and neither policy nor
// descriptor declares the method safe to repeat. A nil policy says nothing.
func (s *Set) DeniesTransparentRetry(p *Policy, method string) bool {
	if p == nil {
		return denies(s.config.TransparentRetry) && !inside.DeclaredIdempotent(s.Set, method)
	}
	return denies(cmp.Or(p.spec.TransparentRetry, s.config.TransparentRetry)) && p.spec.IdempotencyKey == "" && !s.Safe(p, method)
}

// DeniesRefusedRetry reports whether the trailer is ignored by which a server says that it did not process a call: the
// policy, of this set or not, says so, or the set where the policy says nothing. A nil policy says nothing.
func (s *Set) DeniesRefusedRetry(p *Policy) bool {
	said := s.config.RefusedRetry
	if p != nil {
		said = cmp.Or(p.spec.RefusedRetry, said)
	}
	return denies(said)
}

func denies(permission *bool) bool { return permission != nil && !*permission }
