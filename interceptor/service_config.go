// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/decision"
)

// WithServiceConfig makes the Retrier apply the retry policies of the service config that a connection
// has received, from its resolver (such as DNS TXT records) or as its default (grpc.WithDefaultServiceConfig),
// to methods without an entry in the policy file. A change applies to calls that begin later.
// Without a file, the set given to [New] may be nil.
//
// gRPC's own retries stay off ([Retrier.DialOptions]). stagger's replace them, with full jitter, the default
// budget or the file's retryThrottling, and all other defaults of a policy file. Methods count as
// idempotent, because gRPC itself would retry them; an entry in the file with idempotency NONE prevents it. The
// timeout applies to the whole call. An entry in the file overrides the delivered one, except the settings that
// gRPC applies by itself: timeout (of each attempt), waitForReady and the limits of messages.
//
// Before later attempts, a call waits for a channel that cannot connect, as with a policy file. If the
// delivered entry sets waitForReady, to true or false, only that applies.
//
// gRPC shows interceptors only retry policies, timeouts and waitForReady, as it has read them: it cuts maxAttempts to the limit
// of grpc.WithMaxCallAttempts, 5 by default. hedgingPolicy, retryThrottling and stagger's
// own keys apply only if you wrap the resolver with [Retrier.Resolver]. Policies of an xDS server
// are invisible.
//
// A call that begins before the resolver has answered gets its policy after its first attempt has failed. If the policy requires
// an idempotency key, which the attempt did not send, the call is not retried. With [Retrier.Resolver], gRPC does not
// send the first attempt of such a call again by itself (transparentRetry), because the policy may forbid it.
// Problems are reported once per config: to the observers, and in [State]. Every call takes
// gRPC's read lock to read the current config.
func WithServiceConfig() Option {
	return func(r *Retrier) error {
		r.serviceConfigs = new(serviceConfigs)
		return nil
	}
}

// serviceConfigs are the service configs that connections have received.
type serviceConfigs struct {
	entries     entries // as read by gRPC
	targets     targets // complete, from wrapped resolvers
	diagnostics diagnostics
	whole       atomic.Bool // a resolver is wrapped
}

// configSet is a delivered set of policies.
type configSet struct {
	set   *decision.Set
	rules atomic.Pointer[rules]
}

// beside returns the rules of the set, merged with those of the policy file.
func (c *configSet) beside(file *rules) *rules {
	r := c.rules.Load()
	if r == nil || r.file != file {
		r = newRules(c.set, budgetOfServiceConfig)
		r.config, r.file = c, file
		if !r.throttled {
			r.budgets[""], r.throttled = file.budgets[""], file.throttled
		}
		c.rules.Store(r)
	}
	return r
}

// resolves reports whether service configs may have keys that gRPC does not know.
func (r *Retrier) resolves() bool { return r.serviceConfigs != nil && r.serviceConfigs.whole.Load() }

// found is the result of lookup.
type found struct {
	rules       *rules           // that the policy belongs to
	policy      *decision.Policy // nil if the method has none: one attempt
	maxAttempts int              // the limit of the Retrier and the connection
	pending     bool             // the connection may not have received a config yet: look again after the first attempt has failed
}

// lookup returns the policy for a call: the file's entry for the method, else the connection's service config,
// else the API's policy. again means that the call's first attempt has failed.
func (r *Retrier) lookup(cc *grpc.ClientConn, method string, again bool) found {
	file := r.rules.Load()
	f := found{rules: file, policy: file.set.Lookup(method), maxAttempts: r.attemptLimit()}
	if r.serviceConfigs == nil || cc == nil || f.policy != nil && file.set.Configured(f.policy) {
		return f
	}
	mc := cc.GetMethodConfig(method)
	c := r.received(cc, method, &mc, again)
	if c == nil {
		f.pending = f.policy == nil && cc.GetState() != connectivity.Ready // a READY connection has received its config
		return f
	}
	p := c.set.Lookup(method)
	if p == nil && f.policy != nil {
		return f
	}
	f.rules, f.policy = c.beside(file), p
	if mc.RetryPolicy != nil {
		f.maxAttempts = min(f.maxAttempts, mc.RetryPolicy.MaxAttempts)
	}
	return f
}

// received returns the connection's service config for a method, which gRPC reads as mc, or nil if there is
// none, or none yet.
func (r *Retrier) received(cc *grpc.ClientConn, method string, mc *grpc.MethodConfig, again bool) *configSet {
	c := r.serviceConfigs.targets.findConfig(cc)
	switch {
	case c.governs(method, mc):
		return &c.config.configSet
	case c == nil && !again && r.serviceConfigs.targets.wrapped.Load() && cc.GetState() == connectivity.Idle:
		return nil // gRPC still has the last config, but its resolver is closed
	case c != nil && !c.answered:
		return nil
	case mc.RetryPolicy == nil:
		return nil // gRPC itself applies a mere timeout
	}
	return r.entrySet(cc, method, mc)
}
