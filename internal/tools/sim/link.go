// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// link is who calls whom: processes of one kind, which are a fleet's clients or a service's backends, and the
// service that they call, by one policy.
type link struct {
	world       *world
	spec        *Call
	to          *service
	policy      *decision.Policy
	safe        bool // to repeat
	elsewhere   bool // a retry goes to another backend
	blind       bool // see [Variant]
	maxAttempts int  // a cap over the policy's own
	retriers    *retriers
	budgets     *budgets
	methods     []methods.Method // that each process calls
	known       []methods.Known  // the same, as the policy sees them
	deadlines   deadlines
	fleet       *fleet     // nil for calls between services
	counts      callCounts // of a fleet's calls
	jitter      *rand.Rand // of the backoffs
	network     *rand.Rand
	picks       *rand.Rand // of connections
	roundRobin  []uint32   // of each connection
	work        float64    // of a request, in times of the service
}

// maxAttempts is the cap over the policies' maxAttempts: the call's, or that of its policy file.
func (c *Call) maxAttempts(set *decision.Set) int {
	if c.Attempts > 0 || set == nil {
		return max(c.Attempts, 1)
	}
	return set.Config().MaxAttemptsLimit
}

// pick is what round_robin names next: each connection goes round, from anywhere.
func (l *link) pick(client int) *backend {
	n := l.spec.connections()
	i := client * n
	if n > 1 {
		i += l.picks.IntN(n)
	}
	l.roundRobin[i]++
	return l.to.backends[int(l.roundRobin[i])%len(l.to.backends)]
}

// clientOf is the process of a backend that calls.
func (l *link) clientOf(b *backend) int { return b.index % l.processes() }

// transit is how long a message is under way, and whether it is lost.
func (l *link) transit() (delay time.Duration, lost bool) {
	if p := l.spec.Loss; p > 0 && l.network.Float64() < p {
		return 0, true
	}
	if l.spec.Delay == nil {
		return 0, false
	}
	return l.spec.Delay.draw(l.network), false
}

// setPolicy looks up what the calls follow, and what pays for them, as a Retrier does.
func (l *link) setPolicy(r *retriers, method string) error {
	once := decision.New(policy.Spec{}) // the policy of calls without one: an attempt
	l.retriers, l.policy, l.maxAttempts = r, once, l.spec.maxAttempts(r.set)
	if r.set != nil {
		if p := r.set.Lookup(method); p != nil {
			l.policy = p
			l.safe = r.set.Safe(p, method) || p.IdempotencyKey() != ""
		}
		var err error
		if l.elsewhere, err = retriesElsewhere(r.set); err != nil {
			return err
		}
	}
	l.known, l.methods = make([]methods.Known, l.processes()), r.method(l.to.spec.Name, method)
	budgets, err := r.budget(l.policy, l.to.spec.Name, method)
	l.budgets = budgets
	return err
}

func (l *link) processes() int { return len(l.retriers.slots) }

// method is what a process knows of the method that it calls; nil if it learns nothing.
func (l *link) method(client int, now time.Duration) attempts.Method {
	if l.blind {
		return nil
	}
	k := &l.known[client]
	if !k.Any() {
		*k = l.methods[client].For(l.policy, l.policy.Criticality(), true, now)
	}
	return k
}
