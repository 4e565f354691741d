// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// terms is what a file allows for the calls of a method.
type terms struct {
	set    *decision.Set
	method string           // "/service/method", or a name of the file such as "/service/"
	policy *decision.Policy // one attempt if
}

func termsOf(set *decision.Set, method string) terms {
	t := terms{set, method, set.Lookup(method)}
	if t.policy == nil {
		t.policy = decision.New(policy.Spec{})
	}
	return t
}

func (t terms) attempts() int { return min(t.policy.MaxAttempts(), t.set.Config().MaxAttemptsLimit) }

// enforced returns the percentage of calls whose extra attempts are sent.
func (t terms) enforced() float64 { return enforced(t.policy) }

type moded interface {
	Mode() policy.Mode
	Percent() float64
}

func enforced(of moded) float64 {
	if of.Mode() > policy.ModeEnforce {
		return 0
	}
	return of.Percent()
}

const idempotency = "idempotency" // the key

// safety ranks how calls are declared idempotent. It returns the key, and its meaning.
func (t terms) safety() (rank int, key, text string) {
	spec := t.policy.Spec()
	switch {
	case t.set.Safe(t.policy, t.method) && !strings.HasSuffix(t.policy.Name(), "/"):
		return 3, "name", "idempotent"
	case t.set.Safe(t.policy, t.method):
		return 3, idempotency, "idempotent"
	case spec.IdempotencyKey != "":
		return 2, "idempotencyKey", "idempotent with a key"
	case spec.Idempotency == policy.IdempotencyNone:
		return 0, idempotency, "not idempotent"
	default:
		return 1, idempotency, "idempotent if the .proto declares it"
	}
}
