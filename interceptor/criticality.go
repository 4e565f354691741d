// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"strconv"

	"github.com/stagger-go/stagger/policy"
)

type criticalityKey struct{}

// ContextWithCriticality returns a context whose calls have a criticality: whether they are refused before or after others, if
// their policy has admission: REFUSE. If a call's policy has another one, SHEDDABLE wins, then CRITICAL. An undefined value has
// no effect, with a warning. Servers don't see it.
func ContextWithCriticality(ctx context.Context, c policy.Criticality) context.Context {
	return context.WithValue(ctx, criticalityKey{}, c)
}

// criticality returns the criticality of a call with admission, else "". It is SHEDDABLE if its policy or its context has it, else
// CRITICAL if one of them has it.
func (c *call) criticality() policy.Criticality {
	if !c.policy.Refuses() {
		return ""
	}
	own := c.policy.Criticality()
	switch given, _ := c.ctx.Value(criticalityKey{}).(policy.Criticality); given {
	case policy.CriticalitySheddable:
		return given
	case policy.CriticalityCritical:
		if own != policy.CriticalitySheddable {
			return given
		}
	case policy.CriticalityDefault, "":
	default:
		c.retrier.warnOnce(&wrongCriticality, string(given), strconv.Quote(string(given)))
	}
	return own
}
