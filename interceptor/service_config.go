// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// WithServiceConfig makes the Retrier apply the retry policies of the service config that a connection
// has received, from its resolver (such as DNS TXT records) or as its default (grpc.WithDefaultServiceConfig),
// to methods without an entry in the policy file. Without a file, the set given to [New] may be nil.
//
// The Retrier asks [grpc.ClientConn.GetMethodConfig] when the first attempt of a call failed, so the config may arrive as late
// as that, and a success costs nothing. Without a retryPolicy, or without a connection, the call is not retried.
// Streams keep their messages for replay from the start.
//
// gRPC's retries stay off ([Retrier.DialOptions]). stagger's replace them, with full jitter, the file's default
// budget, and all other defaults of a policy file. Methods count as idempotent, because gRPC itself would retry them; an entry in
// the file with idempotency NONE prevents it. The timeout applies to the whole call. maxAttempts is at most the limit of
// grpc.WithMaxCallAttempts, 5 by default, and that of the Retrier. An entry in the file overrides the delivered one, except the
// settings that gRPC applies by itself: timeout (of each attempt), waitForReady and the limits of messages.
//
// gRPC does not show interceptors the rest of a service config: hedgingPolicy, retryThrottling, stagger's own keys, and the
// policies of an xDS server have no effect.
func WithServiceConfig() Option {
	return func(r *Retrier) error {
		p, err := policy.New(policy.Spec{Retry: &policy.RetrySpec{
			MaxAttempts: maxDelivered, Backoff: policy.Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}, Codes: []codes.Code{codes.Unavailable},
		}})
		if err != nil {
			return err
		}
		r.unasked = decision.New(p.Spec())
		return nil
	}
}

// maxDelivered is more than any policy's attempts.
const maxDelivered = 1 << 20

// lookup returns the policy for a call: the file's entry for the method, else Retrier.unasked, whose call asks for the
// connection's service config when it failed, else Retrier.single.
func (r *Retrier) lookup(of *rules, cc *grpc.ClientConn, method string) *decision.Policy {
	if p := of.set.Lookup(method); p != nil {
		return p
	}
	if cc != nil && r.unasked != nil {
		return r.unasked
	}
	return r.single
}

// deliveredPolicies are the policies of service configs, by gRPC's *RetryPolicy, which belongs to one entry of one config.
type deliveredPolicies struct {
	byEntry sync.Map
	count   atomic.Int64
}

// maxEntries bounds the policies, since those that no connection uses any more are kept.
const maxEntries = 1000

// policyOf returns the policy of an entry, or nil if it has no retries.
func (d *deliveredPolicies) policyOf(mc grpc.MethodConfig) *decision.Policy {
	if mc.RetryPolicy == nil {
		return nil // gRPC itself applies a mere timeout
	}
	if known, ok := d.byEntry.Load(mc.RetryPolicy); ok {
		p, _ := known.(*decision.Policy)
		return p
	}
	if d.count.Add(1) > maxEntries {
		d.byEntry.Clear()
		d.count.Store(1)
	}
	p := compileEntry(&mc)
	d.byEntry.Store(mc.RetryPolicy, p)
	return p
}

// compileEntry converts an entry to a policy. gRPC has checked it, by rules that are laxer than ours; an entry that ours reject has
// no retries.
func compileEntry(mc *grpc.MethodConfig) *decision.Policy {
	rp := mc.RetryPolicy
	spec := policy.Spec{
		Idempotency: "ASSUME", WaitForReady: mc.WaitForReady,
		Retry: &policy.RetrySpec{
			MaxAttempts: rp.MaxAttempts,
			Backoff:     policy.Backoff{Initial: rp.InitialBackoff, Max: rp.MaxBackoff, Multiplier: rp.BackoffMultiplier, Jitter: "FULL"},
		},
	}
	if mc.Timeout != nil {
		spec.Timeout = max(*mc.Timeout, 0)
	}
	for code := codes.OK + 1; code <= codes.Unauthenticated; code++ {
		if rp.RetryableStatusCodes[code] {
			spec.Retry.Codes = append(spec.Retry.Codes, code)
		}
	}
	if len(spec.Retry.Codes) == 0 {
		return nil
	}
	p, err := policy.New(spec)
	if err != nil {
		return nil
	}
	return decision.New(p.Spec())
}
