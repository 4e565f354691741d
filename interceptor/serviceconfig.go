// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/policy"
)

// FromServiceConfig has the Retrier carry out the retry policies of the service config that a connection
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
// gRPC shows interceptors only the retry policies and timeouts, as it has read them. The rest, which is
// hedgingPolicy, retryThrottling and stagger's own keys, is carried out if the resolver is wrapped in
// [Retrier.Resolver]. Not seen are policies that an xDS server delivers.
//
// A call that begins before the resolver has answered takes its policy when its first attempt has failed.
// Problems are reported once for each config: to the observers, and in [Retrier.Warnings]. For every call,
// gRPC's read lock is taken to see the config of the moment.
func FromServiceConfig() Option {
	return func(r *Retrier) error {
		r.delivered = new(delivered)
		return nil
	}
}

// delivered is what connections have received.
type delivered struct {
	entries sync.Map // what gRPC has made of a retryPolicy, a pointer, to its *origin
	count   atomic.Int64
	texts   texts
	reports reports
}

// maxEntries bounds what is kept of configs that hold no more: a resolver delivers new ones, even if they
// say the same, each time it looks.
const maxEntries = 1000

// origin is where delivered policies come from.
type origin struct {
	set   *policy.Set
	rules atomic.Pointer[rules]
}

// follow are the rules of the origin, beside those of the policy file.
func (o *origin) follow(file *rules) *rules {
	r := o.rules.Load()
	if r == nil || r.file != file {
		r = newRules(o.set)
		r.file = file
		if !r.throttled {
			r.specs[""], r.throttled, r.empty = file.specs[""], file.throttled, file.empty
		}
		o.rules.Store(r)
	}
	return r
}

// lookup finds the policy for a call, and the rules that it belongs to: what the file says of the method,
// else what the connection has received, else what comes with the API; nil if nobody says anything. flags
// has configPending if nobody does, but the connection may have received nothing yet.
func (r *Retrier) lookup(cc *grpc.ClientConn, method string) (of *rules, p *policy.Policy, flags callFlags) {
	of = r.rules.Load()
	p = of.set.Lookup(method)
	if r.delivered == nil || cc == nil || p != nil && of.set.Configured(p) {
		return of, p, 0
	}
	o := r.origin(cc, method)
	switch {
	case o == nil && p == nil:
		return of, nil, configPending
	case o == nil:
		return of, p, 0
	}
	if found := o.set.Lookup(method); found != nil || p == nil {
		return o.follow(of), found, 0
	}
	return of, p, 0
}

// origin is where the connection's policy for a method comes from; nil if it has none.
func (r *Retrier) origin(cc *grpc.ClientConn, method string) *origin {
	mc := cc.GetMethodConfig(method)
	if mc.WaitForReady != nil {
		if o := r.delivered.texts.find(mc.WaitForReady); o != nil {
			return o
		}
	}
	if mc.RetryPolicy == nil {
		return nil // a timeout alone is gRPC's business
	}
	if o, ok := r.delivered.entries.Load(mc.RetryPolicy); ok {
		return o.(*origin) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	if r.delivered.count.Add(1) > maxEntries {
		r.delivered.entries.Clear()
		r.delivered.count.Store(1)
	}
	o, _ := r.delivered.entries.LoadOrStore(mc.RetryPolicy, r.readEntry(cc, method, &mc))
	return o.(*origin) //nolint:errcheck,forcetypeassert // nothing else is stored
}
