// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// link is who calls whom: processes of one kind, a fleet's clients or a service's backends, and the service
// that they call, by one policy.
type link struct {
	world     *world
	spec      *Call
	to        *service
	policy    *policy.Policy
	processes *processes
	budgets   *purse
	attempts  int // a cap over the policy's own
	room      int32
	safe      bool
	deadlines deadlines
	source    *source    // what it is told of; nil for calls between services
	jitter    *rand.Rand // of the backoffs
	network   *rand.Rand
	picks     *rand.Rand // of connections
	turns     []uint32   // of the round robin of each connection
}

// processes are those of a fleet, or of a service that calls another.
type processes struct{ list []process }

// process is one client process as far as its calls share something.
type process struct {
	waiting int32 // calls in a backoff
	most    int32
}

var _ attempts.Slots = (*process)(nil)

// Enter implements [attempts.Slots].
func (p *process) Enter() bool {
	if p.waiting >= p.most {
		return false
	}
	p.waiting++
	return true
}

// Leave implements [attempts.Slots].
func (p *process) Leave() { p.waiting-- }

// maxAttempts is the cap that a Retrier has unless it is built with another.
const maxAttempts = 5

// single is the policy of calls without one: an attempt.
func single() (*policy.Policy, error) { return policy.New(policy.Spec{}) }

// pick chooses the backend of the next attempt: each connection goes round, from anywhere.
func (l *link) pick(client int) *backend {
	n := l.spec.connections()
	i := client * n
	if n > 1 {
		i += l.picks.IntN(n)
	}
	l.turns[i]++
	return l.to.backends[l.turns[i]%uint32(len(l.to.backends))] //nolint:gosec // few
}

// clientOf is the process of a backend that calls.
func (l *link) clientOf(b *backend) int { return b.index % len(l.processes.list) }

// passage is how long a message is under way, and whether it never comes.
func (l *link) passage() (delay time.Duration, lost bool) {
	if p := l.spec.Loss; p > 0 && l.network.Float64() < p {
		return 0, true
	}
	if l.spec.Delay == nil {
		return 0, false
	}
	return l.spec.Delay.draw(l.network), false
}

// process is that of a client.
func (l *link) process(client int) *process {
	p := &l.processes.list[client]
	p.most = l.room
	return p
}

// payer is the budget of a process's calls, made when it makes the first of them.
func (l *link) payer(client int) budget.Budget { return l.budgets.of(client) }

// purse are the balances of one budget: one for each process, or one for all if nothing is counted.
type purse struct {
	spec policy.BudgetSpec
	free bool // nothing is limited
	list []budget.Budget
}

func (p *purse) of(client int) budget.Budget {
	if p.free {
		return budget.Unlimited
	}
	if p.list[client] == nil {
		p.list[client], _ = mint(p.spec) // it has been tried
	}
	return p.list[client]
}

// mint makes a budget as it is described.
func mint(spec policy.BudgetSpec) (budget.Budget, error) {
	switch {
	case spec.Throttle != nil:
		return budget.NewThrottle(budget.ThrottleConfig(*spec.Throttle))
	case spec.Concurrent != nil:
		return budget.NewConcurrent(budget.ConcurrentConfig(*spec.Concurrent))
	case spec.Refund != nil:
		return budget.NewRefund(budget.RefundConfig(*spec.Refund))
	case spec.Ratio != nil:
		return budget.NewRatio(budget.RatioConfig(*spec.Ratio))
	default:
		return nil, fmt.Errorf("sim: budget %q is of no kind", spec.Name)
	}
}
