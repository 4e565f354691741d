// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"strconv"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

type criticalityKey struct{}

// ContextWithCriticality returns a context whose calls have a criticality: whether they are refused before or after others, if
// their policy has admission: REFUSE. If a call's policy has another one, SHEDDABLE wins, then CRITICAL. An undefined value has
// no effect, with a warning. Servers don't see it.
func ContextWithCriticality(ctx context.Context, c policy.Criticality) context.Context {
	return context.WithValue(ctx, criticalityKey{}, c)
}

// assignCriticality sets the criticality of a call with admission. It is SHEDDABLE if its policy or its context has it, else
// CRITICAL if one of them has it.
func (o *callOptions) assignCriticality(ctx context.Context, p *decision.Policy) {
	if !p.Refuses() {
		return
	}
	o.criticality = p.Criticality()
	switch c, _ := ctx.Value(criticalityKey{}).(policy.Criticality); c {
	case policy.CriticalitySheddable:
		o.criticality = c
	case policy.CriticalityCritical:
		if o.criticality != policy.CriticalitySheddable {
			o.criticality = c
		}
	case policy.CriticalityDefault, "":
	default:
		o.retrier.warnOnce(&wrongCriticality, string(c), strconv.Quote(string(c)))
	}
}
