// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// policyOption has the policy of one call. Like all options of this package it embeds
// grpc.EmptyCallOption, so that it has no effect on a connection without the interceptor.
type policyOption struct {
	grpc.EmptyCallOption

	policy *decision.Policy // nil: one attempt
}

// Policy makes p the policy of one call. It replaces the Retrier's policy for the
// method. If a policy made by [policy.New] doesn't set the idempotency, the
// method's descriptor does. To change only some settings of the policy file's entry, and keep its idempotency,
// use [policy.Policy.Spec]. maxAttempts above the Retrier's limit is cut, with a warning. A
// nil policy means no retries. Make the option once and reuse it: each call of Policy prepares the policy again.
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

// MaxAttempts limits one call to n attempts, including the first. It never raises the limits of the policy and the Retrier,
// and all their other settings apply. 1 means no retries and no hedges; less counts as 1,
// with a warning. If given several times, the last applies. For a stream with [Resume], the limit holds between two messages:
// an attempt that delivers a message counts as the first again, so the whole stream may make any number of attempts.
func MaxAttempts(n int) grpc.CallOption { return maxAttemptsOption{n: n} }

type idempotentOption struct{ grpc.EmptyCallOption }

// Idempotent declares one call idempotent: if it has already taken effect, a second effect
// does no harm. It overrides policy and descriptor.
func Idempotent() grpc.CallOption { return idempotentOption{} }

type disableOption struct{ grpc.EmptyCallOption }

// Disable makes one call bypass the Retrier: no policy, no retries, no events, and no deposit in a
// budget. gRPC then behaves as without a Retrier.
func Disable() grpc.CallOption { return disableOption{} }

// insideOption marks the attempts of a Retrier, so that a second one on the same connection ignores
// them: two would multiply their attempts.
type insideOption struct{ grpc.EmptyCallOption }
