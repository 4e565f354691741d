// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"time"

	"github.com/stagger-go/stagger/internal/document"
)

// noted collects what plain gRPC will not do.
type noted []Diagnostic

func (n *noted) add(field, value, message string) {
	*n = append(*n, Diagnostic{Severity: SeverityNote, Field: field, Value: value, Message: message})
}

// entry notes what is lost of an entry.
func (n *noted) entry(path string, m MethodConfig) {
	if len(m.Names) == 0 {
		return
	}
	if m.IdempotencyKey != "" {
		n.add(path+".idempotencyKey", m.IdempotencyKey, "gRPC sends no such key; it retries all the same")
	}
	switch {
	case m.Retry != nil:
		n.unsafe(path, m)
		n.retry(path+".retryPolicy", m.Retry)
	case m.Hedge != nil:
		n.unsafe(path, m)
		n.hedge(path+".hedgingPolicy", m.Hedge)
	}
}

// unsafe notes the one that matters most.
func (n *noted) unsafe(path string, m MethodConfig) {
	switch {
	case m.IdempotencyKey != "" || m.Idempotency == IdempotencyAssume || m.Idempotency == IdempotencyByName:
	case m.Idempotency == IdempotencyNone:
		n.add(path+".idempotency", m.Idempotency.String(),
			"gRPC repeats these methods as if they were safe to repeat; take the policy out for gRPC")
	default:
		n.add(path+".idempotency", m.Idempotency.String(),
			"gRPC does not ask whether a method is safe to repeat, and repeats all methods that the entry is for")
	}
}

// retry notes what is lost of a retry policy.
func (n *noted) retry(path string, r *RetrySpec) {
	b := r.Backoff
	n.attempts(path, r.MaxAttempts)
	if b.Growth == GrowthLinear {
		n.add(path+".growth", b.Growth.String(), "gRPC multiplies the backoff each time (EXPONENTIAL)")
	}
	if b.Jitter != JitterProportional {
		n.add(path+".jitter", b.Jitter.String(), "gRPC spreads a backoff by 20 % to both sides (PROPORTIONAL)")
	}
	n.time(path+".perAttemptTimeout", r.PerAttemptTimeout, 0, "gRPC waits for a slow attempt until the call's deadline")
	n.budget(path, r.Budget)
	if r.CommitOn != CommitOnHeaders {
		n.add(path+".commitOn", r.CommitOn.String(), "gRPC does not retry an attempt whose headers have arrived (HEADERS)")
	}
	n.pushback(path, r.MaxPushback, r.MinAttemptTime)
	for i, c := range r.PerCode {
		n.add(document.Item(path+".perCode", i), c.Codes.String(), "gRPC has no settings of their own for codes")
	}
	for i, o := range r.Overrides {
		n.add(document.Item(path+".codeOverrides", i), o.Codes.String(), "gRPC takes the code as it is, not as "+CodeName(o.As))
	}
	if r.Chain > ChainAllow {
		n.add(path+".chain", r.Chain.String(), "gRPC retries inside of retried calls too")
	}
	if r.WaitForReadyOnRetry {
		n.add(path+".waitForReadyOnRetry", "true", "with gRPC, retries fail at once while there is no connection, unless waitForReady holds")
	}
}

// hedge notes what is lost of a hedging policy.
func (n *noted) hedge(path string, h *HedgeSpec) {
	n.add(path, "", "gRPC for Go does not hedge: one attempt")
	n.attempts(path, h.MaxAttempts)
	if h.Quantile != nil {
		n.add(path+".hedgingQuantile", "", "gRPC hedges after hedgingDelay, "+document.FormatDuration(h.Delay))
	}
	n.budget(path, h.Budget)
	n.pushback(path, h.MaxPushback, h.MinAttemptTime)
}

func (n *noted) attempts(path string, most int) {
	const grpcs = 5
	if most > grpcs {
		n.add(path+".maxAttempts", strconv.Itoa(most), "gRPC cuts it to 5 (gRFC A6)")
	}
}

func (n *noted) budget(path, name string) {
	if name != NoBudget {
		n.add(path+".budget", name, "gRPC knows no budget but retryThrottling; without that, nothing bounds what all calls together add")
	}
}

func (n *noted) pushback(path string, longest, least time.Duration) {
	n.time(path+".maxPushback", longest, DefaultMaxPushback, "gRPC waits for as long as a server says")
	n.time(path+".minAttemptTime", least, DefaultMinAttemptTime, "gRPC retries however little time is left")
}

// time notes a duration that is neither absent nor the usual one.
func (n *noted) time(field string, d, usual time.Duration, message string) {
	if d != 0 && d != usual {
		n.add(field, document.FormatDuration(d), message)
	}
}
