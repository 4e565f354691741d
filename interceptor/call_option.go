// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/policy"
)

// policyOption carries a policy for one call. Like all options of this package it embeds
// grpc.EmptyCallOption, so that it does nothing on a connection without the interceptor.
type policyOption struct {
	grpc.EmptyCallOption

	policy *policy.Policy
}

// WithPolicy makes p the policy of one call, in place of the one that the Retrier has for the
// method. A policy on its own ([policy.New]) that says nothing of idempotency leaves it to the
// method's descriptor. One that wants more attempts than the Retrier allows is cut, with a warning. A
// nil policy means no retries.
func WithPolicy(p *policy.Policy) grpc.CallOption { return policyOption{policy: p} }

type idempotentOption struct{ grpc.EmptyCallOption }

// Idempotent declares one call safe to repeat: it may have taken effect already, and doing so again
// does no harm. It wins over everything that policy and descriptor say.
func Idempotent() grpc.CallOption { return idempotentOption{} }

type disableOption struct{ grpc.EmptyCallOption }

// Disable lets one call pass the Retrier by: no policy, no retries, no events, and no deposit in a
// budget.
func Disable() grpc.CallOption { return disableOption{} }

// insideOption marks the attempts of a Retrier, so that a second one on the same connection keeps
// out: two would multiply their attempts.
type insideOption struct{ grpc.EmptyCallOption }
