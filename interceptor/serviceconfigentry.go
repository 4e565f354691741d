// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// readEntry makes a policy of what gRPC has read of an entry with a retryPolicy. gRPC has checked it, by
// rules that are laxer than ours.
func (r *Retrier) readEntry(cc *grpc.ClientConn, method string, mc *grpc.MethodConfig) *origin { //nolint:staticcheck // gRPC tells in no other way
	rp := mc.RetryPolicy
	about := policy.Diagnostic{File: "service config of " + target(cc), Field: "retryPolicy for " + method}
	key := about.File + fmt.Sprint(*rp)
	spec := policy.Spec{Retry: &policy.RetrySpec{
		MaxAttempts: rp.MaxAttempts,
		Backoff:     policy.Backoff{Initial: rp.InitialBackoff, Max: rp.MaxBackoff, Multiplier: rp.BackoffMultiplier, Jitter: policy.JitterFull},
	}}
	if mc.Timeout != nil {
		spec.Timeout = max(*mc.Timeout, 0)
	}
	for code, listed := range rp.RetryableStatusCodes {
		if listed && code != codes.OK {
			spec.Retry.Codes |= policy.Codes(code)
		}
	}
	if rp.RetryableStatusCodes[codes.OK] {
		p := about
		p.Value, p.Message = "OK", "is no failure, and is passed over in retryableStatusCodes"
		r.report(key+p.Value, p)
	}
	r.reportCut(key, about, rp.MaxAttempts)
	if spec.Retry.Codes == 0 {
		spec.Retry = nil
	}
	set, err := policy.NewSet(policy.Config{
		Idempotency: policy.IdempotencyAssume, Methods: []policy.MethodConfig{{Names: []policy.Name{{}}, Spec: spec}},
	})
	if err != nil { // nothing that gRPC accepts is known to come here
		about.Message = "is not followed: " + err.Error()
		r.report(key+about.Message, about)
		set, _ = policy.NewSet(policy.Config{})
	}
	return &origin{set: set}
}

// reports are the diagnostics of what was delivered.
type reports struct {
	mu   sync.Mutex // guards all
	list []policy.Diagnostic
	seen map[string]bool
}

// maxReports bounds what hostile configs can make a Retrier keep.
const maxReports = 1000

// report warns of what was delivered, once for each key.
func (r *Retrier) report(key string, d policy.Diagnostic) {
	d.Severity = policy.SeverityWarning
	if r.delivered.reports.add(key, d) {
		r.warn(d)
	}
}

// reportCut tells of a policy that wants more attempts than the Retrier allows.
func (r *Retrier) reportCut(key string, about policy.Diagnostic, attempts int) {
	if attempts <= r.maxAttempts {
		return
	}
	about.Value = strconv.Itoa(attempts)
	about.Message = fmt.Sprintf("maxAttempts is cut to %d, the most that this Retrier allows; interceptor.WithMaxAttempts allows more", r.maxAttempts)
	r.report(key+about.Field+about.Value, about)
}

func (r *reports) add(key string, d policy.Diagnostic) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[key] || len(r.seen) >= maxReports {
		return false
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[key] = true
	r.list = append(r.list, d)
	return true
}

func (r *reports) all() []policy.Diagnostic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.list)
}
