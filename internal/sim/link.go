// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	_ "github.com/stagger-go/stagger/admission" // the gates
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// link connects processes of one kind, a fleet's clients or a service's backends, with the service that they call by one
// policy.
type link struct {
	world       *world
	spec        *Call
	to          *service
	policy      *policy.Policy
	safe        bool // the method is idempotent
	elsewhere   bool // a retry goes to another backend
	blind       bool // see [Variant]
	maxAttempts int  // cap on the policy's attempts
	retriers    *retriers
	budgets     *budgets
	methods     []*evidence.Method // the method, for each process
	known       []*evidence.Known  // the same, as the policy sees them; nil: not used yet
	gates       []admitting.Gate   // admission of the method, for each process; nil: none
	fleet       *fleet             // nil for calls between services
	counts      callCounts         // of a fleet's calls
	jitter      *rand.Rand         // of the backoffs
	network     *rand.Rand
	picks       *rand.Rand            // of connections
	roundRobin  []uint32              // of each connection
	work        float64               // of a request, in times of the service
	connected   map[connection]uint32 // the start of the backend to which it leads
	limiter     *limiter              // nil: no limit
}

// maxAttempts returns the cap on the policies' maxAttempts: the call's, or that of its policy file.
func (c *Call) maxAttempts(set *methods.Set) int {
	if c.Attempts > 0 || set == nil {
		return max(c.Attempts, 1)
	}
	return set.Compiled().MaxAttemptsLimit
}

// connectionOf returns the connection of a process that an attempt uses, at random.
func (l *link) connectionOf(client int) int {
	n := l.spec.connections()
	i := client * n
	if n > 1 {
		i += l.picks.IntN(n)
	}
	return i
}

// nextBackend returns the next backend of a connection, in round-robin order. A connection starts at a random one.
func (l *link) nextBackend(connection int) *backend {
	l.roundRobin[connection]++
	return l.to.backends[int(l.roundRobin[connection])%len(l.to.backends)]
}

// connect reports whether the process of an attempt has to connect to the backend, and connects.
func (l *link) connect(a *attempt) bool {
	to := connection{a.client, a.backend.index}
	if l.connected[to] == a.backend.starts {
		return false
	}
	if l.connected == nil {
		l.connected = map[connection]uint32{}
	}
	l.connected[to] = a.backend.starts
	return true
}

// connection is one of a process to a backend.
type connection struct{ client, backend int }

// clientOf returns the process of a backend that calls.
func (l *link) clientOf(b *backend) int { return b.index % l.processes() }

// transit draws a message's delay, and whether the message is lost.
func (l *link) transit() (delay time.Duration, lost bool) {
	if p := l.spec.Loss; p > 0 && l.network.Float64() < p {
		return 0, true
	}
	if l.spec.Delay == nil {
		return 0, false
	}
	return l.spec.Delay.Sample(l.network), false
}

// setPolicy looks up the policy and the budget of the calls, as a Retrier does.
func (l *link) setPolicy(r *retriers, method string) error {
	once, err := compiled.NewPolicy(spec.Policy{}) // calls without a policy have one attempt
	if err != nil {
		return err
	}
	l.retriers, l.policy, l.maxAttempts = r, once, l.spec.maxAttempts(r.set)
	if r.set != nil {
		if p := r.set.Lookup(method); p != nil {
			l.policy = p
			l.safe = r.set.Safe(p, method) || p.IdempotencyKey() != ""
		}
		if l.elsewhere, err = retriesElsewhere(r.set); err != nil {
			return err
		}
	}
	l.known, l.methods = make([]*evidence.Known, l.processes()), r.methodsOf(l.to.spec.Name, method)
	if l.policy.Admission() {
		l.gates = r.gatesOf(l.to.spec.Name, method)
	}
	budgets, err := r.budgetsFor(l.policy, l.to.spec.Name, method)
	l.budgets = budgets
	return err
}

func (l *link) processes() int { return len(l.retriers.slots) }

// knownMethod returns what a process has learned about its method, or nil if it does not learn.
func (l *link) knownMethod(client int, now time.Duration) attempts.Method {
	if l.blind {
		return nil
	}
	if l.known[client] == nil {
		l.known[client] = new(l.methods[client].For(compiled.Of(l.policy).Quantile(), now))
	}
	return l.known[client]
}

// replaceProcess forgets what a process has learned, spent and connected.
func (l *link) replaceProcess(client int) {
	l.methods[client], l.known[client] = evidence.NewMethod(), nil
	if l.gates != nil {
		l.gates[client] = admitting.Registered()()
	}
	if !l.budgets.unlimited {
		l.budgets.list[client] = nil
	}
	for i := range l.to.backends {
		delete(l.connected, connection{client, i})
	}
}

// gate returns the admission of a process, or nil if it has none.
func (l *link) gate(client int) admitting.Gate {
	if l.blind || l.gates == nil {
		return nil
	}
	return l.gates[client]
}

// retriers are one Retrier in each process of one kind: the state that calls by one policy file share.
type retriers struct {
	set     *methods.Set // nil: no policy
	slots   []slots      // one for each process
	budgets map[budgetKey]*budgets
	methods map[methodKey][]*evidence.Method // one for each process, as below
	gates   map[methodKey][]admitting.Gate
}

// retriersKey identifies the calls that share retriers.
type retriersKey struct {
	from, policy string // of a fleet or a service, and of a policy file
	processes    int
}

func newRetriers(set *methods.Set, processes int) *retriers {
	r := &retriers{
		set: set, slots: make([]slots, processes), budgets: map[budgetKey]*budgets{},
		methods: map[methodKey][]*evidence.Method{}, gates: map[methodKey][]admitting.Gate{},
	}
	most := defaults.MaxWaiting
	if set != nil {
		most = set.Compiled().MaxWaiting
	}
	for i := range r.slots {
		r.slots[i].most = int32(min(most, 1<<30))
	}
	return r
}

// slots are the wait slots of one process.
type slots struct{ taken, most int32 }

var _ attempts.Slots = (*slots)(nil)

// TakeSlot implements [attempts.Slots].
func (s *slots) TakeSlot(attempts.Wait) bool {
	if s.taken >= s.most {
		return false
	}
	s.taken++
	return true
}

// MoveSlot implements [attempts.Slots].
func (s *slots) MoveSlot(_, _ attempts.Wait) {}

// ReleaseSlot implements [attempts.Slots].
func (s *slots) ReleaseSlot(attempts.Wait) { s.taken-- }

type methodKey struct{ target, name string }

// methodsOf returns the state of a service's method in each process.
func (r *retriers) methodsOf(target, name string) []*evidence.Method {
	key := methodKey{target, name}
	if r.methods[key] == nil {
		for range r.slots {
			r.methods[key] = append(r.methods[key], evidence.NewMethod())
		}
	}
	return r.methods[key]
}

// gatesOf returns the admission of a service's method in each process.
func (r *retriers) gatesOf(target, name string) []admitting.Gate {
	key := methodKey{target, name}
	if r.gates[key] == nil {
		for range r.slots {
			r.gates[key] = append(r.gates[key], admitting.Registered()())
		}
	}
	return r.gates[key]
}

// budgetKey identifies the calls of a process that share a balance, as in the interceptor: those with the same budget in the
// same scope.
type budgetKey struct{ name, target, service string }

// budgetsFor returns the budget that pays for a method's calls by a policy.
func (r *retriers) budgetsFor(p *policy.Policy, target, method string) (*budgets, error) {
	name := p.Budget()
	if r.set == nil || name == "NONE" || p.MaxAttempts() < 2 && r.set.Compiled().RetryThrottling == nil {
		return &budgets{unlimited: true}, nil
	}
	of := spec.Budget{}
	if throttle := r.set.Compiled().RetryThrottling; throttle != nil {
		of.Config = *throttle
	}
	for _, named := range r.set.Compiled().Budgets {
		if named.Name == name {
			of = named
		}
	}
	key := budgetKey{name: of.Name}
	if of.Scope != "PROCESS" {
		key.target = target
	}
	if of.Scope == "SERVICE" {
		key.service, _, _ = strings.Cut(strings.TrimPrefix(method, "/"), "/")
	}
	if r.budgets[key] == nil {
		config := cmp.Or[budget.Config](of.Config, budget.Default())
		if _, err := budget.New(config); err != nil {
			return nil, fmt.Errorf("sim: budget %q: %w", name, err)
		}
		r.budgets[key] = &budgets{config: config, list: make([]budget.Budget, len(r.slots))}
	}
	return r.budgets[key], nil
}

// budgets are the balances of one budget: one for each process, created at its first call.
type budgets struct {
	config    budget.Config
	unlimited bool
	list      []budget.Budget
}

func (b *budgets) balanceOf(client int) budget.Budget {
	if b.unlimited {
		return budget.Unlimited
	}
	if b.list[client] == nil {
		b.list[client], _ = budget.New(b.config) // config was tried already
	}
	return b.list[client]
}
