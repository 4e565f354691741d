// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/policy"
)

// settings returns an entry's settings for retries or hedges, defaults included.
func settings(p *decision.Policy) []Fact {
	spec := p.Spec()
	var (
		list    []Fact
		longest time.Duration // pushback
	)
	add := func(name, format string, args ...any) {
		list = append(list, Fact{name, fmt.Sprintf(format, args...)})
	}
	if r := spec.Retry; r != nil {
		longest = r.MaxPushback
		add("codes", "%s", codename.List(r.Codes))
		add("backoff", "%s", firstRetry(r.FirstRetryAtOnce)+backoff(p.Backoff()))
		for _, own := range r.PerCode {
			add("", "%s%s: %s", codename.List(own.Codes), informed(own), perCode(own))
		}
		for _, o := range r.Overrides {
			add("", "%s%s counts as %s%s", codename.List(o.Codes), informed(o), codename.Of(o.As), containing(o.Contains))
		}
	}
	if h := spec.Hedge; h != nil {
		longest = h.MaxPushback
		add("hedges", "%s", hedges(h))
		if len(h.NonFatal) > 0 {
			add("codes", "%s: the next attempt is sent at once; all others end the call", codename.List(h.NonFatal))
		} else {
			add("codes", "none is non-fatal: each failure ends the call")
		}
	}
	switch p.Admission() {
	case policy.AdmissionRefuse:
		add("admission", "REFUSE: a call that cannot be answered before its deadline is not made; criticality %s", p.Criticality())
	case policy.AdmissionAuto:
		add("admission", "AUTO: a call that cannot be answered before its deadline is not made, if it is SHEDDABLE or its servers say how busy they are; criticality %s", p.Criticality())
	default:
	}
	if p.SendsCriticality() {
		add("criticality", "%s, sent with each call (sendCriticality); that of the incoming call or of the call itself may be another", p.Criticality())
	}
	if spec.Retry == nil && spec.Hedge == nil {
		return list
	}
	var times []string
	if spec.Timeout > 0 {
		times = append(times, fmt.Sprintf("%v for the call", spec.Timeout))
	}
	if t := p.PerAttemptTimeout(); t > 0 {
		times = append(times, fmt.Sprintf("%v for an attempt, then %s", t, onTimeout(spec.Retry.CancelOnTimeout)))
	}
	if p.Parallel() {
		add("parallel", "if stagger can make a reply for the codec, as it can for protobuf; else in sequence (docs/hedging.md)")
	}
	if t := p.MaxConnectionWait(); t > 0 {
		times = append(times, fmt.Sprintf("%v for a connection", t))
	}
	if len(times) > 0 {
		add("timeouts", "%s", strings.Join(times, "; "))
	}
	add("pushback", "obeyed up to %v; a longer one ends the call", cmp.Or(longest, defaults.MaxPushback))
	return list
}

func backoff(b policy.Backoff) string {
	text := fmt.Sprintf("%v", b.Initial)
	switch {
	case b.Multiplier == 1 && !b.Linear:
		text += " each time"
	case b.Linear:
		text += fmt.Sprintf(", and × %v of that more each time, up to %v", b.Multiplier, b.Max)
	default:
		text += fmt.Sprintf(", × %v each time, up to %v", b.Multiplier, b.Max)
	}
	return text + "; jitter " + string(cmp.Or(b.Jitter, policy.JitterFull))
}

func firstRetry(atOnce bool) string {
	if atOnce {
		return "none before the first retry (AT_ONCE; within 1 ms), then "
	}
	return ""
}

func perCode(own policy.CodeSpec) string {
	var parts []string
	if own.MaxAttempts > 0 {
		parts = append(parts, fmt.Sprintf("%d attempts", own.MaxAttempts))
	}
	if own.Backoff != nil {
		parts = append(parts, backoff(*own.Backoff))
	}
	if own.CostFactor > 0 {
		parts = append(parts, fmt.Sprintf("costs the budget × %v", own.CostFactor))
	}
	if own.OnlyWithServerDelay {
		parts = append(parts, "retried only if the server names a delay")
	}
	if own.NotProcessed {
		parts = append(parts, "the server has not processed the call, which is retried even if undeclared")
	}
	return strings.Join(parts, "; ")
}

func informed(own policy.CodeSpec) string {
	if own.ErrorDomain == "" && own.ErrorReason == "" {
		return ""
	}
	return fmt.Sprintf(" (%s of %s)", cmp.Or(own.ErrorReason, "*"), cmp.Or(own.ErrorDomain, "*"))
}

func containing(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" if its message has %q", text)
}

func hedges(h *policy.HedgeSpec) string {
	switch {
	case h.Quantile == 0 && h.Delay == 0:
		return "all at once"
	case h.Quantile == 0:
		return fmt.Sprintf("one every %v", h.Delay)
	}
	bounds := fmt.Sprintf("at least %v", max(h.MinDelay, defaults.MinHedgingDelay))
	if h.MaxDelay > 0 {
		bounds += fmt.Sprintf(" and at most %v", h.MaxDelay)
	}
	return fmt.Sprintf("one after the latency that %v of the calls stay under, %s; after %v until that is known", h.Quantile, bounds, h.Delay)
}

func onTimeout(cancel bool) string {
	if cancel {
		return "another one in its place (RETRY)"
	}
	return "a parallel one (HEDGE)"
}
