// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// Strategy is how the calls of a method are retried.
type Strategy string

// The strategies.
const (
	Retried  Strategy = "retried"
	Hedged   Strategy = "hedged"
	Unsent   Strategy = "only if never sent" // retried if the attempt provably never left the client
	Once     Strategy = "neither"            // one attempt
	Observed Strategy = "observed"           // one attempt; further ones are only decided
)

// Effect is the result of a policy for one method.
type Effect struct {
	Policy   *policy.Policy // nil if no entry names the method
	Entry    string         // the name that matches
	Strategy Strategy
	Attempts int
	Safe     bool
	Because  string        // why it is idempotent, or why not
	Budget   string        // "" without extra attempts
	Rule     budget.Config // of that budget; nil: none
	Alone    bool          // attempts never run in parallel: the client sends a stream
}

// EffectOf returns the effect on "/service/method", for a Retrier with a cap on attempts.
func EffectOf(set *methods.Set, method string, maxAttempts int) Effect {
	e := Effect{Policy: set.Lookup(method), Strategy: Once, Attempts: 1}
	if e.Policy == nil {
		e.Entry, e.Because = "none", "no entry names it, its service or everything"
		return e
	}
	e.Entry = entry(e.Policy)
	e.Safe, e.Because = safe(set, e.Policy, method)
	e.Attempts = min(e.Policy.MaxAttempts(), maxAttempts)
	e.Alone = set.ClientStreams(method)
	spec := compiled.Of(e.Policy)
	switch {
	case spec.Retry == nil && spec.Hedge == nil:
		return e
	case e.Policy.Mode() == policy.ModeOff:
		e.Attempts = 1
		return e
	case e.Policy.Mode() == policy.ModeObserve:
		e.Attempts, e.Strategy = 1, Observed
	case !e.Safe:
		e.Strategy = Unsent
	case spec.Hedge != nil && !e.Alone:
		e.Strategy = Hedged
	default:
		e.Strategy = Retried
	}
	e.Budget, e.Rule = budgetOf(set, e.Policy)
	return e
}

// Why returns what declares the method idempotent, or why nothing does, unless there is nothing to retry.
func (e *Effect) Why() string {
	switch p := e.Policy; {
	case p == nil:
	case e.Strategy == Once && p.Mode() == policy.ModeOff && (compiled.Of(p).Retry != nil || compiled.Of(p).Hedge != nil):
		return "the mode is OFF"
	case e.Strategy == Once:
		return "the entry has no retryPolicy or hedgingPolicy"
	case e.Strategy == Observed:
		return "the mode is OBSERVE"
	default:
	}
	return e.Because
}

func entry(p *policy.Policy) string {
	if p.Name() == "/" {
		return "{}"
	}
	return p.Name()
}

func safe(set *methods.Set, p *policy.Policy, method string) (yes bool, because string) {
	key, named := p.IdempotencyKey(), !strings.HasSuffix(p.Name(), "/")
	switch said := compiled.Of(p).Idempotency; {
	case key != "":
		return true, "sends an idempotency key, " + key
	case said == "ASSUME" && named:
		return true, "the entry names the method"
	case said == "ASSUME":
		return true, "idempotency is ASSUME"
	case said == "NONE":
		return false, "idempotency is NONE"
	case set.Safe(p, method):
		return true, "idempotency_level is " + set.Level(method)
	default:
		return false, "nothing declares it idempotent"
	}
}

func budgetOf(set *methods.Set, p *policy.Policy) (name string, rule budget.Config) {
	config := set.Compiled()
	switch name = p.Budget(); {
	case name == "NONE":
		return "none", nil
	case name == "" && config.RetryThrottling != nil:
		return "retryThrottling", *config.RetryThrottling
	case name == "":
		return "default", budget.Default()
	}
	for _, b := range config.Budgets {
		if b.Name == name {
			rule = b.Config
		}
	}
	return name, rule
}
