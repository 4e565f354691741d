// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package inside is what this module's packages ask of policies and Retriers, and users need not. Packages policy and interceptor set
// these functions, since this package cannot import them. Package policies has those of policies with types.
package inside

import (
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// What package policy sets. set is a *policy.Set, and p a *policy.Policy.
var (
	// Admission returns the places in the file at which admission is REFUSE, as errors without a message.
	Admission func(set any) []document.Diagnostic
	// NewSet checks a config and returns its *policy.Set, and NewPolicy a policy that is in no set. The error is a *policy.Error.
	NewSet    func(c spec.Config) (set any, err error)
	NewPolicy func(s spec.Policy) (p any, err error)
	// Config returns that of the set itself, with defaults. It must not be changed.
	Config func(set any) *spec.Config
	// Spec returns that of the policy itself, with defaults; in a set, with the idempotency that follows from its name and the
	// file. It must not be changed.
	Spec func(p any) *spec.Policy
	// Retry returns the settings of extra attempts: those of Spec, or for a hedging policy what hedges share with retries; without extra
	// attempts, one attempt. It must not be changed.
	Retry func(p any) *spec.Retry
	// Declares reports whether the policy's own set has it for a method, or it is in no set. Else its entry speaks of other methods only.
	Declares func(p any, method string) bool
	// Channel returns the keys of the file that gRPC itself implements, such as loadBalancingConfig, as a service config in JSON, and the
	// place of loadBalancingConfig in the file.
	Channel func(set any) (config string, at document.Diagnostic)
	// KeyPlace returns where the file has loadBalancingConfig, loadBalancingPolicy or healthCheckConfig, as an error without a message.
	KeyPlace func(set any, key string) document.Diagnostic
	// Elsewhere returns the place of the first entry of loadBalancingConfig that names stagger_retry_elsewhere.
	Elsewhere func(set any) document.Diagnostic
	// Place returns where the file names a method, a service or everything, as in spec.MethodConfig.Names: a warning with File, Line,
	// Column and Field, but no message. It is zero if no entry has the name.
	Place func(set any, name string) document.Diagnostic
)

// What package interceptor sets. retrier is an *interceptor.Retrier.
var (
	// AddObserver makes the Retrier notify an interceptor.Observer of calls from now on, as interceptor.WithObserver does from the start,
	// until stop is called. For a call that runs at either time, it may get only some of the events, without Peer. An event in delivery
	// when stop is called may reach it after stop has returned, but no later ones do. Both are safe for concurrent use.
	AddObserver func(retrier, observer any) (stop func())
	// Descriptors returns the files of interceptor.WithDescriptors: a []*protoregistry.Files.
	Descriptors func(retrier any) any
	// Random returns an interceptor.Option that makes random the source of all jitter, for simulations and tests that repeat. It
	// must return numbers in [0, 1), and be safe for concurrent use.
	Random func(random func() float64) any
)
