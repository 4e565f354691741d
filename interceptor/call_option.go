// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"crypto/rand"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/policy"
)

// policyOption has the policy of one call. Like all options of this package it embeds
// grpc.EmptyCallOption, so that it has no effect on a connection without the interceptor.
type policyOption struct {
	grpc.EmptyCallOption

	policy *policy.Policy // nil: one attempt
}

// Policy makes p, of any [policy.Set], the policy of one call. It replaces the Retrier's policy for the method. If p's set has another
// policy for the method, or none, p doesn't declare the call idempotent. Then the Retrier's entry for the method, or the method's
// descriptor, decides whether the call may run twice, and which idempotency key it sends. If maxAttempts exceeds the Retrier's limit, the
// limit applies, with a warning. A nil policy means no retries. Make the option once and reuse it, because each call of Policy prepares the
// policy again.
func Policy(p *policy.Policy) grpc.CallOption {
	if p == nil {
		return policyOption{}
	}
	return policyOption{policy: p}
}

type maxAttemptsOption struct {
	grpc.EmptyCallOption

	n int
}

// MaxAttempts limits one call to n attempts, including the first. It never raises the limits of the policy and the Retrier, and all their
// other settings apply. 1 means no retries and no hedges; less counts as 1, with a warning. If given several times, the last applies. For a
// stream with [Resume], the limit applies between two messages: an attempt that delivers a message counts as the first again, so the whole
// stream may make any number of attempts.
func MaxAttempts(n int) grpc.CallOption { return maxAttemptsOption{n: n} }

type idempotentOption struct{ grpc.EmptyCallOption }

// Idempotent declares one call idempotent: if it runs twice, the second run does no harm. It overrides policy and descriptor.
func Idempotent() grpc.CallOption { return idempotentOption{} }

type disableOption struct{ grpc.EmptyCallOption }

// Disable makes one call bypass the Retrier: no policy, no retries, no events, and no deposit in a
// budget. gRPC then behaves as without a Retrier.
func Disable() grpc.CallOption { return disableOption{} }

type optionalOption struct{ grpc.EmptyCallOption }

// Optional says that the handler that makes the call can continue without its response, as with a cache. If the call gives up, and the
// handler later fails for another reason, the caller of the server may still retry: see [Retrier.ServerOptions]. The call itself is retried
// like any other. Outside of a handler, the option has no effect. For all calls of a connection, pass it to grpc.WithDefaultCallOptions.
func Optional() grpc.CallOption { return optionalOption{} }

// insideOption marks the attempts of a Retrier, so that a second one on the same connection ignores
// them: two would multiply their attempts.
type insideOption struct{ grpc.EmptyCallOption }

type keyOption struct {
	grpc.EmptyCallOption

	key string
}

// IdempotencyKey sends key with every attempt of one call, in the header that the method's entry names or, by default, in
// "idempotency-key". It declares the call idempotent, unless its policy has idempotency NONE. The server must recognize two attempts of one
// call by the key. Use one key for each operation that must happen once, and the same key when the application itself retries. If key is
// "", a random key is used.
func IdempotencyKey(key string) grpc.CallOption { return keyOption{key: key} }

// keyCounts reports whether a key makes the calls of a policy idempotent. A key of the caller's doesn't override an entry
// that declares its methods unsafe: the server may ignore the key.
func keyCounts(p *policy.Policy) bool {
	return p.IdempotencyKey() != "" || p.Idempotency() != "NONE"
}

// withKey returns the context of a call that sends an idempotency key, and the key, "" if the call sends none. If
// header is "", it uses the default header, provided that the caller has asked for a key. The key is the
// option's, else the one in the caller's metadata, else a new one.
func withKey(ctx context.Context, header string, caller []grpc.CallOption) (_ context.Context, key string) {
	asked := false
	for _, o := range caller {
		if o, ok := o.(keyOption); ok {
			key, asked = o.key, true
		}
	}
	if header == "" && !asked {
		return ctx, ""
	}
	header = cmp.Or(header, defaults.IdempotencyHeader)
	md, ok := metadata.FromOutgoingContext(ctx)
	if own := cmp.Or(md.Get(header)...); key == "" && own != "" {
		return ctx, own
	}
	if !ok {
		md = metadata.MD{}
	}
	key = cmp.Or(key, rand.Text())
	md.Set(header, key)
	return metadata.NewOutgoingContext(ctx, md), key
}
