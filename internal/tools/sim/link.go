// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/inside"
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
	fleet       *fleet           // nil for calls between services
	counts      callCounts       // of a fleet's calls
	jitter      *rand.Rand       // of the backoffs
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

// nextBackend is what round_robin names next: each connection goes round, from anywhere.
func (l *link) nextBackend(client int) *backend {
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
	return l.spec.Delay.sample(l.network), false
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
	l.known, l.methods = make([]methods.Known, l.processes()), r.methodsOf(l.to.spec.Name, method)
	budgets, err := r.budgetsFor(l.policy, l.to.spec.Name, method)
	l.budgets = budgets
	return err
}

func (l *link) processes() int { return len(l.retriers.slots) }

// knownMethod is what a process knows of the method that it calls; nil if it learns nothing.
func (l *link) knownMethod(client int, now time.Duration) attempts.Method {
	if l.blind {
		return nil
	}
	k := &l.known[client]
	if !k.Any() {
		*k = l.methods[client].For(l.policy, l.policy.Criticality(), true, now)
	}
	return k
}

// retriers are one Retrier in each of the processes of one kind: what their calls share that follow one policy file.
type retriers struct {
	set     *decision.Set // nil: the calls follow none
	slots   []slots       // one for each process
	budgets map[budgetKey]*budgets
	methods map[methods.Key][]methods.Method // one for each process
}

// retriersKey says which calls share retriers.
type retriersKey struct {
	from, policy string // a fleet or a service, and the name of a policy file
	processes    int
}

func newRetriers(set *decision.Set, processes int) *retriers {
	r := &retriers{set: set, slots: make([]slots, processes), budgets: map[budgetKey]*budgets{}, methods: map[methods.Key][]methods.Method{}}
	most := defaults.MaxWaiting
	if set != nil {
		most = set.Config().MaxWaiting
	}
	for i := range r.slots {
		r.slots[i].most = int32(min(most, 1<<30))
	}
	return r
}

// slots are those of the calls of one process that wait for an attempt.
type slots struct{ taken, most int32 }

var _ attempts.Slots = (*slots)(nil)

// Enter implements [attempts.Slots].
func (s *slots) Enter() bool {
	if s.taken >= s.most {
		return false
	}
	s.taken++
	return true
}

// Leave implements [attempts.Slots].
func (s *slots) Leave() { s.taken-- }

// methodsOf is what the processes know of a method of a service.
func (r *retriers) methodsOf(target, name string) []methods.Method {
	key := methods.Key{Target: target, Method: name}
	if r.methods[key] == nil {
		r.methods[key] = make([]methods.Method, len(r.slots))
	}
	return r.methods[key]
}

// budgetKey says which calls of a process share a balance, as in the interceptor: those with one budget, as far as its
// scope reaches.
type budgetKey struct{ name, target, service string }

// budgetsFor finds what pays for the calls of a method of a service by a policy.
func (r *retriers) budgetsFor(p *decision.Policy, target, method string) (*budgets, error) {
	name := p.Budget()
	if r.set == nil || name == policy.NoBudget || p.MaxAttempts() < 2 && r.set.Config().Throttling == nil {
		return &budgets{unlimited: true}, nil
	}
	spec := policy.BudgetSpec{}
	if throttle := r.set.Config().Throttling; throttle != nil {
		spec.Config = *throttle
	}
	for _, named := range r.set.Config().Budgets {
		if named.Name == name {
			spec = named
		}
	}
	key := budgetKey{name: spec.Name}
	if spec.Scope != policy.ScopeProcess {
		key.target = target
	}
	if spec.Scope == policy.ScopeService {
		key.service, _, _ = strings.Cut(strings.TrimPrefix(method, "/"), "/")
	}
	if r.budgets[key] == nil {
		config := inside.Config(spec.Config)
		if _, err := balance.New(config, nil); err != nil {
			return nil, fmt.Errorf("sim: budget %q: %w", name, err)
		}
		r.budgets[key] = &budgets{config: config, list: make([]balance.Budget, len(r.slots))}
	}
	return r.budgets[key], nil
}

// budgets are the balances of one budget: one for each process, made when that makes its first call.
type budgets struct {
	config    balance.Config
	unlimited bool
	list      []balance.Budget
}

func (b *budgets) balanceOf(client int) balance.Budget {
	if b.unlimited {
		return balance.Unlimited
	}
	if b.list[client] == nil {
		b.list[client], _ = balance.New(b.config, nil) // it has been tried
	}
	return b.list[client]
}
