// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// entries are the policies of service configs as read by gRPC: *configSet by entry.
type entries struct {
	sets  sync.Map
	count atomic.Int64
}

// maxEntries bounds the entries, since those that no connection uses any more are kept.
const maxEntries = 10_000

// entry is a retryPolicy with its timeout and waitForReady, as read by gRPC, and its source.
type entry struct {
	target         string
	maxAttempts    int
	initialBackoff time.Duration
	maxBackoff     time.Duration
	multiplier     float64
	codes          uint32        // one bit each
	timeout        time.Duration // 0: none
	waits          bool          // waitForReady
	saysWaits      bool          // waitForReady is set
}

func entryOf(cc *grpc.ClientConn, mc *grpc.MethodConfig) entry {
	rp := mc.RetryPolicy
	e := entry{
		target: target(cc), maxAttempts: rp.MaxAttempts,
		initialBackoff: rp.InitialBackoff, maxBackoff: rp.MaxBackoff, multiplier: rp.BackoffMultiplier,
	}
	for code, listed := range rp.RetryableStatusCodes {
		if listed {
			e.codes |= 1 << code
		}
	}
	if mc.Timeout != nil {
		e.timeout = max(*mc.Timeout, 0)
	}
	if mc.WaitForReady != nil {
		e.waits, e.saysWaits = *mc.WaitForReady, true
	}
	return e
}

// entrySet returns the policy of an entry with a retryPolicy.
func (r *Retrier) entrySet(cc *grpc.ClientConn, method string, mc *grpc.MethodConfig) *configSet {
	all, e := &r.serviceConfigs.entries, entryOf(cc, mc)
	known, _ := all.sets.Load(e)
	if c, ok := known.(*configSet); ok {
		return c
	}
	if all.count.Add(1) > maxEntries {
		all.sets.Clear()
		all.count.Store(1)
	}
	c := &configSet{set: decision.Compile(r.readEntry(e, method))}
	all.sets.Store(e, c)
	return c
}

// readEntry converts an entry to a policy. gRPC has checked it, by rules that are laxer than ours.
func (r *Retrier) readEntry(e entry, method string) *policy.Set {
	spec := policy.Spec{Timeout: e.timeout, Retry: &policy.RetrySpec{
		MaxAttempts: e.maxAttempts,
		Backoff:     policy.Backoff{Initial: e.initialBackoff, Max: e.maxBackoff, Multiplier: e.multiplier, Jitter: policy.JitterFull},
	}}
	if e.saysWaits {
		spec.WaitForReady = new(e.waits)
	}
	for code := codes.OK + 1; code <= codes.Unauthenticated; code++ {
		if e.codes&(1<<code) != 0 {
			spec.Retry.Codes = append(spec.Retry.Codes, code)
		}
	}
	warn := func(value, message string) {
		r.warnOfServiceConfig(fmt.Sprint(e, value), policy.Diagnostic{
			File: "service config of " + e.target, Field: "retryPolicy for " + method, Value: value, Message: message,
		})
	}
	if e.codes&(1<<codes.OK) != 0 {
		warn("OK", "is not a failure, and is ignored in retryableStatusCodes")
	}
	if most := r.attemptLimit(); e.maxAttempts > most {
		warn(strconv.Itoa(e.maxAttempts), fmt.Sprintf("maxAttempts is cut to %d, the most that this Retrier allows; %s", most, allowsMore))
	}
	if len(spec.Retry.Codes) == 0 {
		spec.Retry = nil
	}
	set, err := policy.NewSet(policy.Config{
		Idempotency: policy.IdempotencyAssume, Methods: []policy.MethodConfig{{Names: []string{"/"}, Spec: spec}},
	})
	if err != nil { // no known config that gRPC accepts
		warn("", "is not followed: "+err.Error())
		set, _ = policy.NewSet(policy.Config{})
	}
	return set
}

// diagnostics are the problems of received service configs.
type diagnostics struct {
	mu   sync.Mutex // guards all
	list []policy.Diagnostic
	seen map[string]bool
}

// maxDiagnostics bounds the memory that hostile configs can use.
const maxDiagnostics = 1000

// warnOfServiceConfig warns of a received service config, once per key.
func (r *Retrier) warnOfServiceConfig(key string, d policy.Diagnostic) {
	d.Severity = policy.SeverityWarning // its errors don't fail calls
	if r.serviceConfigs.diagnostics.noteOnce(key, d) {
		r.warn(d)
	}
}

func (a *diagnostics) noteOnce(key string, d policy.Diagnostic) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[key] || len(a.seen) >= maxDiagnostics {
		return false
	}
	if a.seen == nil {
		a.seen = map[string]bool{}
	}
	a.seen[key] = true
	a.list = append(a.list, d)
	return true
}

func (a *diagnostics) all() []policy.Diagnostic {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.list)
}
