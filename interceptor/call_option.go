// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// policyOption carries a policy for one call. Like all options of this package it embeds
// grpc.EmptyCallOption, so that it does nothing on a connection without the interceptor.
type policyOption struct {
	grpc.EmptyCallOption

	policy *decision.Policy // nil: one attempt
}

// Policy makes p the policy of one call, in place of the one that the Retrier has for the
// method. A policy on its own ([policy.New]) that says nothing of idempotency leaves it to the
// method's descriptor; one that differs from the policy file's in some points, and keeps its idempotency,
// comes from [policy.Policy.Derive]. A policy that wants more attempts than the Retrier allows is cut, with a warning. A
// nil policy means no retries. Make the option once and keep it: each call of Policy prepares the policy anew.
func Policy(p *policy.Policy) grpc.CallOption {
	if p == nil {
		return policyOption{}
	}
	return policyOption{policy: decision.New(p.Spec())}
}

type maxAttemptsOption struct {
	grpc.EmptyCallOption

	n int
}

// MaxAttempts allows one call n attempts at most, the first included, where its policy and the Retrier allow more;
// everything else that they say holds. n is at least 1, which means no retries and no hedges; less counts as 1,
// with a warning. Of several, the last holds.
func MaxAttempts(n int) grpc.CallOption { return maxAttemptsOption{n: n} }

type criticalityOption struct {
	grpc.EmptyCallOption

	criticality policy.Criticality
}

// Criticality says of one call whether others are refused before it, or it before others, where its policy has
// admission: REFUSE. It wins over the policy's own and that of the context, and is sent along where the policy has
// sendCriticality. A value that there is none of counts as if nothing were said, with a warning. Of several, the last holds.
func Criticality(c policy.Criticality) grpc.CallOption { return criticalityOption{criticality: c} }

type idempotentOption struct{ grpc.EmptyCallOption }

// Idempotent declares one call safe to repeat: it may have taken effect already, and doing so again
// does no harm. It wins over everything that policy and descriptor say.
func Idempotent() grpc.CallOption { return idempotentOption{} }

type disableOption struct{ grpc.EmptyCallOption }

// Disable lets one call pass the Retrier by: no policy, no retries, no events, and no deposit in a
// budget. gRPC then does what it does without a Retrier, whatever transparentRetry says.
func Disable() grpc.CallOption { return disableOption{} }

// insideOption marks the attempts of a Retrier, so that a second one on the same connection keeps
// out: two would multiply their attempts.
type insideOption struct{ grpc.EmptyCallOption }
