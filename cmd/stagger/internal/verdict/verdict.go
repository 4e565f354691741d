// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package verdict is what a policy file says of one method.
package verdict

import (
	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/policy"
)

// Deed is what happens to a method's calls.
type Deed string

// The deeds.
const (
	Retried Deed = "retried"
	Hedged  Deed = "hedged"
	Unsent  Deed = "only if never sent" // retried if the attempt provably never left the client
	Once    Deed = "neither"            // one attempt
)

// Verdict is what holds for a method.
type Verdict struct {
	Method   string         // "/service/method"
	Policy   *policy.Policy // nil if no entry names the method
	Entry    string         // what names it
	Deed     Deed
	Attempts int
	Safe     bool
	Because  string // who says so, or why nobody does
	Budget   string // "" without another attempt
}

// Cap is the most attempts of a Retrier without interceptor.WithMaxAttempts.
const Cap = 5

// Of is the verdict on "/service/method". The set must know the API ([api.API.Join]).
func Of(set *policy.Set, known api.API, method string) Verdict {
	v := Verdict{Method: method, Policy: set.Lookup(method), Deed: Once, Attempts: 1}
	if v.Policy == nil {
		v.Entry, v.Because = "none", "no entry names it, its service or everything"
		return v
	}
	v.Entry = entry(set, v.Policy)
	v.Safe, v.Because = safe(set, known, v.Policy, method)
	v.Attempts = min(v.Policy.MaxAttempts(), Cap)
	spec := v.Policy.Spec()
	switch {
	case spec.Retry == nil && spec.Hedge == nil:
		return v
	case !v.Safe:
		v.Deed = Unsent
	case spec.Hedge != nil:
		v.Deed = Hedged
	default:
		v.Deed = Retried
	}
	v.Budget = budget(set, v.Policy)
	return v
}

func entry(set *policy.Set, p *policy.Policy) string {
	n := p.Name()
	if !set.Configured(p) {
		if n.Method != "" {
			return "the method's option in its .proto"
		}
		return "the service's option in its .proto"
	}
	switch {
	case n.Method != "":
		return n.String()
	case n.Service != "":
		return n.String()
	default:
		return "{}"
	}
}

func safe(set *policy.Set, known api.API, p *policy.Policy, method string) (yes bool, because string) {
	key, named := p.IdempotencyKey(), p.Name().Method != ""
	switch said := p.Spec().Idempotency; {
	case key != "":
		return true, "sends an idempotency key, " + key
	case said == policy.IdempotencyAssume && named && set.Configured(p):
		return true, "the entry names the method"
	case said == policy.IdempotencyAssume && named:
		return true, "the .proto gives the method a policy"
	case said == policy.IdempotencyAssume:
		return true, "idempotency is ASSUME"
	case said == policy.IdempotencyNone:
		return false, "idempotency is NONE"
	case set.Safe(p, method):
		return true, "idempotency_level is " + known.Level(method)
	default:
		return false, "nothing declares it safe to repeat"
	}
}

func budget(set *policy.Set, p *policy.Policy) string {
	switch name := p.Budget(); {
	case name == policy.NoBudget:
		return "none"
	case name != "":
		return name
	case set.Throttling() != nil:
		return "retryThrottling"
	default:
		return "default"
	}
}
