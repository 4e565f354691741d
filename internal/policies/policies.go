// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies makes policies of plain data, and shows the data of a policy. It is for this module's packages and tests: the
// policies of users are text.
package policies

import (
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// NewSet checks a config and returns its set. The error is a [*policy.Error] with all errors in it.
func NewSet(c spec.Config) (*policy.Set, error) {
	made, err := inside.NewSet(c)
	set, _ := made.(*policy.Set)
	return set, err
}

// New checks a spec and returns its policy, which is in no set. The error is a [*policy.Error] with all errors in it.
func New(s spec.Policy) (*policy.Policy, error) {
	made, err := inside.NewPolicy(s)
	p, _ := made.(*policy.Policy)
	return p, err
}

// Config returns the config of a set, with defaults. It must not be changed.
func Config(set *policy.Set) *spec.Config { return inside.Config(set) }

// Spec returns the spec of a policy, with defaults; in a set, the idempotency that follows from its name and the file is filled
// in. The mode of the set is not in it. It must not be changed.
func Spec(p *policy.Policy) *spec.Policy { return inside.Spec(p) }

// Retry returns the settings of extra attempts. Those of a hedging policy say what it shares with retries; a policy without extra attempts
// has one attempt. It must not be changed.
func Retry(p *policy.Policy) *spec.Retry { return inside.Retry(p) }

// Declares reports whether what a policy says of idempotency holds for a method: its own set has the policy for that method, or it is in
// no set.
func Declares(p *policy.Policy, method string) bool { return inside.Declares(p, method) }

// Hedge returns the settings of a hedging policy, or nil. It must not be changed.
func Hedge(p *policy.Policy) *spec.Hedge { return inside.Spec(p).Hedge }

// Quantile returns the hedgingQuantile of a policy, or 0.
func Quantile(p *policy.Policy) float64 {
	if h := Hedge(p); h != nil {
		return h.Quantile
	}
	return 0
}
