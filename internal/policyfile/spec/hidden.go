// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

// Package policy sets these functions when a program starts. They have no types of that package, which imports this one: package compiled has
// them with their types.
var (
	NewSet    func(c Config) (set any, err error)    // makes a *policy.Set
	NewPolicy func(p Policy) (policy any, err error) // makes a *policy.Policy, in no set
	OfSet     func(set any) *CompiledSet             // of a *policy.Set
	OfPolicy  func(policy any) *Compiled             // of a *policy.Policy
)
