// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/decision"
)

// WithServiceConfig has the Retrier carry out the retry policies of the service config that a connection
// has received, from its resolver (DNS TXT records, say) or as its default (grpc.WithDefaultServiceConfig),
// where the policy file has no entry for the method. A change holds for the calls that begin after it.
// Without any file, the set given to [New] may be nil.
//
// gRPC's own retries stay off ([Retrier.DialOptions]). stagger's take their place: full jitter, the default
// budget or the file's retryThrottling, and all else that a policy file may leave out. Methods count as safe
// to repeat, since gRPC itself would repeat them; an entry in the file with idempotency NONE forbids it. The
// timeout holds for the whole call. An entry in the file takes the place of the delivered one, but for what
// gRPC carries out by itself: timeout (of each attempt), waitForReady and the limits of messages.
//
// Before an attempt after the first, a call waits for a channel that cannot connect, as by a policy file; where the
// delivered entry says waitForReady, true or false, that alone holds.
//
// gRPC shows interceptors only the retry policies, timeouts and waitForReady, as it has read them: maxAttempts is cut to what
// grpc.WithMaxCallAttempts allows, 5 by default. The rest, which is hedgingPolicy, retryThrottling and stagger's
// own keys, is carried out if the resolver is wrapped in [Retrier.Resolver]. Policies that an xDS server
// delivers are not seen.
//
// A call that begins before the resolver has answered takes its policy when its first attempt has failed. If that asks for
// an idempotency key, which the attempt did not carry, no other attempt follows. With [Retrier.Resolver], gRPC does not
// send the first attempt of such a call once more by itself (transparentRetry), since the policy may deny it.
// Problems are reported once for each config: to the observers, and in [State]. For every call,
// gRPC's read lock is taken to see the config of the moment.
func WithServiceConfig() Option {
	return func(r *Retrier) error {
		r.serviceConfigs = new(serviceConfigs)
		return nil
	}
}

// serviceConfigs are those that connections have received.
type serviceConfigs struct {
	entries     entries // as gRPC shows them
	targets     targets // whole, from wrapped resolvers
	diagnostics diagnostics
	whole       atomic.Bool // a resolver was wrapped
}

// configSet is a set of policies that was delivered.
type configSet struct {
	set   *decision.Set
	rules atomic.Pointer[rules]
}

// beside returns the rules of the set, beside those of the policy file.
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

// resolves reports whether service configs may come whole, with keys that gRPC does not know.
func (r *Retrier) resolves() bool { return r.serviceConfigs != nil && r.serviceConfigs.whole.Load() }

// found is what lookup finds for a call.
type found struct {
	rules       *rules           // that the policy belongs to
	policy      *decision.Policy // nil if nobody says anything: one attempt
	maxAttempts int              // the most that the Retrier and the connection allow
	pending     bool             // the connection may have received nothing yet: look again when the first attempt has failed
}

// lookup finds the policy for a call: what the file says of the method, else what the connection has received,
// else what comes with the API. again says that the call's first attempt has failed.
func (r *Retrier) lookup(cc *grpc.ClientConn, method string, again bool) found {
	file := r.rules.Load()
	f := found{rules: file, policy: file.set.Lookup(method), maxAttempts: r.attemptLimit()}
	if r.serviceConfigs == nil || cc == nil || f.policy != nil && file.set.Configured(f.policy) {
		return f
	}
	mc := cc.GetMethodConfig(method)
	c := r.received(cc, method, &mc, again)
	if c == nil {
		f.pending = f.policy == nil && cc.GetState() != connectivity.Ready // a READY one has received what there is
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

// received is what the connection has received that holds for a method, which gRPC reads as mc; nil if that is
// nothing, or is not known yet.
func (r *Retrier) received(cc *grpc.ClientConn, method string, mc *grpc.MethodConfig, again bool) *configSet {
	c := r.serviceConfigs.targets.find(cc)
	switch {
	case c.governs(method, mc):
		return &c.config.configSet
	case c == nil && !again && r.serviceConfigs.targets.wrapped.Load() && cc.GetState() == connectivity.Idle:
		return nil // gRPC still has what was received before, but its resolver is closed
	case c != nil && !c.answered:
		return nil
	case mc.RetryPolicy == nil:
		return nil // a timeout alone is gRPC's business
	}
	return r.entrySet(cc, method, mc)
}
