// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package compiled is what the packages of this module know of package policy beyond its exported names: policies that are made of structs,
// and their compiled settings. Programs can't name the types of these, so package policy doesn't export the functions: it sets those of
// package spec when a program starts.
package compiled

import (
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// NewSet checks a config, and returns its set. The error is a [*policy.Error] with all errors in it.
func NewSet(c spec.Config) (*policy.Set, error) {
	made, err := spec.NewSet(c)
	set, _ := made.(*policy.Set)
	return set, err
}

// NewPolicy checks a policy, and returns it: in no set. The error is a [*policy.Error] with all errors in it.
func NewPolicy(p spec.Policy) (*policy.Policy, error) {
	made, err := spec.NewPolicy(p)
	one, _ := made.(*policy.Policy)
	return one, err
}

// OfSet returns the compiled settings of a set.
func OfSet(set *policy.Set) *spec.CompiledSet { return spec.OfSet(set) }

// Of returns the compiled settings of a policy.
func Of(p *policy.Policy) *spec.Compiled { return spec.OfPolicy(p) }
