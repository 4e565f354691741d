// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// link is who calls whom: processes of one kind, which are a fleet's clients or a service's backends, and the
// service that they call, by one policy.
type link struct {
	world       *world
	spec        *Call
	to          *service
	policy      *policy.Policy
	safe        bool // to repeat
	elsewhere   bool // a retry goes to another backend
	maxAttempts int  // a cap over the policy's own
	processes   []process
	budgets     *budgets
	deadlines   deadlines
	fleet       *fleet     // nil for calls between services
	jitter      *rand.Rand // of the backoffs
	network     *rand.Rand
	picks       *rand.Rand // of connections
	roundRobin  []uint32   // of each connection
}

// process is one client process as far as its calls share something.
type process struct {
	waiting, maxWaiting int32
	method              methods.Method // the one that it calls
	known               methods.Known  // the same, as the policy sees it
}

var _ attempts.Slots = (*process)(nil)

// knownFor is what the process knows of the method that it calls.
func (p *process) knownFor(of *policy.Policy, now time.Duration) attempts.Method {
	if !p.known.Any() {
		p.known = p.method.For(of, of.Criticality(), true, now)
	}
	return &p.known
}

// Enter implements [attempts.Slots].
func (p *process) Enter() bool {
	if p.waiting >= p.maxWaiting {
		return false
	}
	p.waiting++
	return true
}

// Leave implements [attempts.Slots].
func (p *process) Leave() { p.waiting-- }

// defaultMaxAttempts is the cap that a Retrier has unless it is built with another.
const defaultMaxAttempts = 5

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
func (l *link) clientOf(b *backend) int { return b.index % len(l.processes) }

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
func (l *link) setPolicy(s *Scenario, name, method string) error {
	once, err := policy.New(policy.Spec{}) // the policy of calls without one: an attempt
	if err != nil {
		return err
	}
	l.policy, l.budgets = once, &budgets{unlimited: true}
	set, maxWaiting := s.Policies[name], policy.DefaultMaxWaiting
	if set != nil {
		maxWaiting = set.MaxWaiting()
		if p := set.Lookup(method); p != nil {
			l.policy = p
			l.safe = set.Safe(p, method) || p.IdempotencyKey() != ""
		}
		if l.elsewhere, err = retriesElsewhere(set); err == nil {
			err = l.setBudget(set)
		}
	}
	for i := range l.processes {
		l.processes[i].maxWaiting = int32(min(maxWaiting, 1<<30))
	}
	return err
}

// setBudget finds the budget of the policy.
func (l *link) setBudget(set *policy.Set) error {
	name := l.policy.Budget()
	throttle := set.Throttling()
	if name == policy.NoBudget || l.policy.MaxAttempts() < 2 && throttle == nil {
		return nil
	}
	var config budget.Config = budget.DefaultRatio()
	if throttle != nil {
		config = *throttle
	}
	for _, named := range set.Budgets() {
		if named.Name == name {
			config = named.Config
		}
	}
	if _, err := budget.New(config); err != nil {
		return fmt.Errorf("sim: budget %q: %w", name, err)
	}
	l.budgets = &budgets{config: config, list: make([]budget.Budget, len(l.processes))}
	return nil
}

// budgets are the balances of one budget: one for each process, made when that makes its first call.
type budgets struct {
	config    budget.Config
	unlimited bool
	list      []budget.Budget
}

func (b *budgets) of(client int) budget.Budget {
	if b.unlimited {
		return budget.Unlimited
	}
	if b.list[client] == nil {
		b.list[client], _ = budget.New(b.config) // it has been tried
	}
	return b.list[client]
}
