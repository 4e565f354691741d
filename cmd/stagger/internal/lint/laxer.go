// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/policy"
)

// loosening is something that a policy newly allows.
type loosening struct {
	key      string // under the entry: "retryPolicy.maxAttempts"
	now, was string
}

// comparison collects what became laxer for a method. It ignores what became stricter.
type comparison struct {
	was, now terms
	found    []loosening
}

func (c *comparison) add(key string, now, was any) {
	c.found = append(c.found, loosening{key, fmt.Sprint(now), fmt.Sprint(was)})
}

// more adds a number that has grown.
func more[T cmp.Ordered](c *comparison, key string, was, now T) {
	if now > was {
		c.add(key, now, was)
	}
}

// less adds a number that has shrunk.
func less[T cmp.Ordered](c *comparison, key string, was, now T) {
	if now < was {
		c.add(key, now, was)
	}
}

// longer adds a time limit that has grown; 0 is none.
func (c *comparison) longer(key string, was, now time.Duration) {
	if was != 0 && (now == 0 || now > was) {
		c.add(key, limit(now), limit(was))
	}
}

// sooner adds a time before further attempts that has shrunk; 0 is never.
func (c *comparison) sooner(key string, was, now time.Duration) {
	if now != 0 && (was == 0 || now < was) {
		c.add(key, limit(now), limit(was))
	}
}

func limit(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// laxer compares what two files allow for the calls of a method.
func laxer(was, now terms) []loosening {
	c := &comparison{was: was, now: now}
	c.calls()
	switch {
	case now.attempts() < 2 || now.enforced() == 0:
		return c.found
	case was.attempts() < 2:
		c.add(c.strategy(), "up to "+strconv.Itoa(now.attempts())+" attempts", "1 attempt")
		return c.found
	}
	if was.enforced() < now.enforced() {
		key := "mode"
		if enforced(was.set) < enforced(now.set) {
			key = inFile + key
		}
		c.add(key, percent(now.enforced()), percent(was.enforced()))
	}
	before, _, wasText := was.safety()
	if after, key, text := now.safety(); after > before {
		c.add(key, text, wasText)
	}
	c.attempts()
	c.retries()
	c.hedges()
	c.budgets()
	return c.found
}

func percent(p float64) string {
	return "sent for " + strconv.FormatFloat(p, 'f', -1, 64) + " % of the calls"
}

// strategy returns the key of the policy that sends attempts.
func (c *comparison) strategy() string {
	if c.now.policy.Hedge() != nil {
		return "hedgingPolicy"
	}
	return "retryPolicy"
}

// calls compares settings for calls with and without retries.
func (c *comparison) calls() {
	was, now := c.was.policy, c.now.policy
	c.longer("timeout", was.Spec().Timeout, now.Spec().Timeout)
	strict := map[policy.Admission]int{policy.AdmissionRefuse: 2, policy.AdmissionAuto: 1}
	if strict[now.Admission()] < strict[was.Admission()] {
		c.add("admission", now.Admission(), was.Admission())
	}
	safe := c.now.set.Safe(now, c.now.method) || now.IdempotencyKey() != ""
	if c.was.set.DeniesTransparentRetry(was, c.was.method) && !c.now.set.DeniesTransparentRetry(now, c.now.method) && !safe {
		c.add("transparentRetry", "ALLOW", "DENY")
	}
	if c.was.set.DeniesRefusedRetry(was) && !c.now.set.DeniesRefusedRetry(now) && !safe {
		c.add("refusedRetry", "ALLOW", "DENY")
	}
}

// attempts compares settings that retries and hedges share.
func (c *comparison) attempts() {
	key, was, now := c.strategy()+".", c.was.policy, c.now.policy
	more(c, key+"maxAttempts", c.was.attempts(), c.now.attempts())
	more(c, key+"maxPushback", maxPushback(was), maxPushback(now))
	less(c, key+"minAttemptTime", was.MinAttemptTime(), now.MinAttemptTime())
	more(c, key+"maxConnectionWait", was.MaxConnectionWait(), now.MaxConnectionWait())
	codesKey := key + "retryableStatusCodes"
	if now.Hedge() != nil {
		codesKey = key + "nonFatalStatusCodes"
	}
	if added := without(retried(now), retried(was)); len(added) > 0 {
		c.add(codesKey, codename.List(added), "not listed")
	}
}

func maxPushback(p *decision.Policy) time.Duration {
	if h := p.Hedge(); h != nil {
		return cmp.Or(h.MaxPushback, defaults.MaxPushback)
	}
	return cmp.Or(p.Spec().Retry.MaxPushback, defaults.MaxPushback)
}

func retried(p *decision.Policy) []codes.Code {
	if p.Hedge() != nil {
		return p.Hedge().NonFatal
	}
	return p.Spec().Retry.Codes
}

func without[T comparable](list, others []T) (rest []T) {
	for _, v := range list {
		if !slices.Contains(others, v) {
			rest = append(rest, v)
		}
	}
	return rest
}

// retries compares two policies that both retry.
func (c *comparison) retries() {
	was, now := c.was.policy.Spec().Retry, c.now.policy.Spec().Retry
	if was == nil || now == nil {
		return
	}
	const key = "retryPolicy."
	c.backoff(key, was.Backoff, now.Backoff)
	c.sooner(key+"perAttemptTimeout", was.PerAttemptTimeout, now.PerAttemptTimeout)
	if was.CancelOnTimeout && !now.CancelOnTimeout && now.PerAttemptTimeout > 0 {
		c.add(key+"onAttemptTimeout", "HEDGE", "RETRY")
	}
	if now.FirstRetryAtOnce && !was.FirstRetryAtOnce {
		c.add(key+"firstRetry", "at once", "after its backoff")
	}
	if was.CommitOnHeaders && !now.CommitOnHeaders {
		c.add(key+"commitOn", "SEEN", "HEADERS")
	}
	if max(now.Chain, policy.ChainAllow) < max(was.Chain, policy.ChainAllow) {
		c.add(key+"chain", now.Chain, was.Chain)
	}
	for _, o := range now.Overrides {
		if slices.Contains(now.Codes, o.As) && !slices.ContainsFunc(was.Overrides, func(old policy.CodeSpec) bool {
			return old.As == o.As && old.Contains == o.Contains && sameInfo(old, o) && len(without(o.Codes, old.Codes)) == 0
		}) {
			c.add(key+"codeOverrides", codename.List(o.Codes)+" counts as "+codename.Of(o.As), "not retried as that")
		}
	}
	c.perCode(*was, *now)
}

func (c *comparison) backoff(key string, was, now policy.Backoff) {
	less(c, key+"initialBackoff", was.Initial, now.Initial)
	less(c, key+"maxBackoff", was.Max, now.Max)
	less(c, key+"backoffMultiplier", was.Multiplier, now.Multiplier)
	if now.Jitter == policy.JitterNone && was.Jitter != policy.JitterNone {
		c.add(key+"jitter", now.Jitter, was.Jitter)
	}
}

// perCode compares the settings for each code, whether the files name it in perCode or not.
func (c *comparison) perCode(was, now policy.RetrySpec) {
	type failure struct {
		code           codes.Code
		domain, reason string // of the ErrorInfo
	}
	var failures []failure
	for _, r := range []policy.RetrySpec{was, now} {
		for _, own := range r.PerCode {
			for _, code := range own.Codes {
				if f := (failure{code, own.ErrorDomain, own.ErrorReason}); slices.Contains(now.Codes, code) && !slices.Contains(failures, f) {
					failures = append(failures, f)
				}
			}
		}
	}
	for _, f := range failures {
		like := policy.CodeSpec{ErrorDomain: f.domain, ErrorReason: f.reason}
		before, after := after(was, f.code, like), after(now, f.code, like)
		key := "retryPolicy.perCode"
		sub := &comparison{}
		more(sub, "maxAttempts", min(before.MaxAttempts, c.was.attempts()), min(after.MaxAttempts, c.now.attempts()))
		less(sub, "costFactor", before.CostFactor, after.CostFactor)
		sub.backoff("", *before.Backoff, *after.Backoff)
		if after.NotProcessed && !before.NotProcessed {
			sub.add("processed", "NO", "not said")
		}
		if before.OnlyWithServerDelay && !after.OnlyWithServerDelay {
			sub.add("onlyWithServerDelay", false, true)
		}
		for _, l := range sub.found {
			if !slices.ContainsFunc(c.found, func(whole loosening) bool { return whole == loosening{"retryPolicy." + l.key, l.now, l.was} }) {
				c.add(key, fmt.Sprintf("%s %s after %s", l.key, l.now, codename.Of(f.code)), l.was)
			}
		}
	}
}

// after returns a policy's settings for a failure, with its defaults filled in.
func after(r policy.RetrySpec, code codes.Code, like policy.CodeSpec) policy.CodeSpec {
	spec := policy.CodeSpec{}
	if i := slices.IndexFunc(r.PerCode, func(own policy.CodeSpec) bool { return sameInfo(own, like) && slices.Contains(own.Codes, code) }); i >= 0 {
		spec = r.PerCode[i]
	}
	spec.MaxAttempts, spec.CostFactor = cmp.Or(spec.MaxAttempts, r.MaxAttempts), cmp.Or(spec.CostFactor, 1)
	spec.Backoff = cmp.Or(spec.Backoff, &r.Backoff)
	return spec
}

func sameInfo(a, b policy.CodeSpec) bool {
	return a.ErrorDomain == b.ErrorDomain && a.ErrorReason == b.ErrorReason
}

// hedges compares two policies; the newer one hedges.
func (c *comparison) hedges() {
	was, now := c.was.policy.Hedge(), c.now.policy.Hedge()
	switch {
	case now == nil:
		return
	case was == nil:
		c.add("hedgingPolicy", "attempts in parallel", "retries")
		return
	}
	const key = "hedgingPolicy."
	less(c, key+"hedgingDelay", was.Delay, now.Delay)
	switch {
	case was.Quantile == 0: // hedges now wait for slow answers only
	case now.Quantile == 0:
		c.add(key+"hedgingQuantile", "none", was.Quantile)
	default:
		less(c, key+"hedgingQuantile.quantile", was.Quantile, now.Quantile)
		less(c, key+"hedgingQuantile.min", was.MinDelay, now.MinDelay)
	}
}
