// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/internal/tools/usual"
	"github.com/stagger-go/stagger/policy"
)

// dice makes choices from bytes, and chooses 0 when none are left.
type dice []byte

// roll returns a number less than n, which is at most 256.
func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	b := (*d)[0]
	*d = (*d)[1:]
	return int(b) % n
}

// one returns true in one of n cases, and false when no bytes are left.
func (d *dice) one(n int) bool { return d.roll(n) == n-1 }

// accounts stand in for a call's budget, wait slot, breaker and admission. They record forbidden uses.
type accounts struct {
	fault    string
	permits  int64
	open     map[int64]bool // permits whose attempt has not ended
	finished int
	slots    int             // held
	allowed  int             // by the breaker, and not yet done
	counted  int             // attempts that admission counts
	answered []time.Duration // the latencies that admission was told
}

func (w *accounts) violate(what string) {
	if w.fault == "" {
		w.fault = what
	}
}

func (w *accounts) Observe(_ time.Time, e budget.Event) {
	if e != budget.EventAttemptFailed {
		w.finished++
	}
}

func (w *accounts) Allow(time.Time, budget.Cause) (ended func(time.Time, budget.End), ok bool) {
	w.permits++
	p := w.permits
	w.open[p] = true
	return func(time.Time, budget.End) {
		if !w.open[p] {
			w.violate("3: an extra attempt ends twice for the budget")
		}
		delete(w.open, p)
	}, true
}

// slots are the accounts as the wait limit.
type slots struct{ *accounts }

func (s slots) TakeSlot() bool { s.slots++; return true }
func (s slots) ReleaseSlot() {
	if s.slots--; s.slots < 0 {
		s.violate("3: a wait slot is left twice")
	}
}

// breaker is the accounts as the circuit breaker.
type breaker struct{ *accounts }

func (b breaker) Open(int) error { return nil }
func (b breaker) Allow(int) (func(error), error) {
	b.allowed++
	return func(error) { b.allowed-- }, nil
}

// load is the accounts as admission.
type load struct{ *accounts }

func (l load) Admit(now, _ time.Duration) int           { return l.Sent(now) }
func (l load) Queued(time.Duration, time.Duration) bool { return false }
func (l load) Sent(time.Duration) int                   { l.counted++; return l.counted }
func (l load) Left(time.Duration, attempts.Lost)        { l.counted-- }
func (l load) Slow(time.Duration) bool                  { return false }
func (l load) Quantile() time.Duration                  { return 0 }
func (l load) Evidence(time.Duration) latency.Evidence  { return latency.Evidence{Fast: true} }

func (l load) Answered(_ time.Duration, a attempts.Answer) {
	took := a.Took
	l.counted--
	l.answered = append(l.answered, took)
	if took < 0 {
		l.violate("an attempt was answered in less than no time")
	}
}

// settled returns what is still held, or "".
func (w *accounts) settled() string {
	switch {
	case len(w.open) > 0:
		return "3: the budget has not heard of an attempt's end"
	case w.slots > 0:
		return "3: a wait slot is still held"
	case w.allowed > 0:
		return "3: the breaker has not heard of an attempt's end"
	case w.counted != 0:
		return "3: admission still counts an attempt"
	case w.finished > 1:
		return "3: the budget was told twice of the call's end"
	default:
		return ""
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// modelPolicies are policies of all kinds.
var modelPolicies = func() (list []*policy.Policy) {
	backoff := policy.Backoff{Initial: ms(10), Max: ms(50), Multiplier: 2}
	retry := func(timeout time.Duration, inPlace bool) policy.Spec {
		r := usual.Retry()
		r.MaxAttempts, r.Backoff, r.RetryableStatusCodes = 3, backoff, []codes.Code{codes.Unavailable}
		r.PerAttemptTimeout = timeout
		if inPlace {
			r.OnAttemptTimeout = "RETRY"
		}
		return policy.Spec{Retry: &r}
	}
	hedge := func(delay time.Duration) policy.Spec {
		return policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 3, HedgingDelay: delay, NonFatalStatusCodes: []codes.Code{codes.Unavailable}}}
	}
	specs := []policy.Spec{
		retry(0, false), retry(ms(20), false), retry(ms(20), true), hedge(ms(20)), hedge(0), {},
	}
	for _, s := range specs {
		p, err := policy.New(s)
		if err != nil {
			panic(err)
		}
		list = append(list, p)
	}
	return list
}()

// choose makes a random call: its policy, its kind, and what its inner interceptors do.
func (m *model) choose() {
	p := modelPolicies[m.dice.roll(len(modelPolicies))]
	kind := m.dice.roll(4)
	m.set = Settings{ClientStreams: kind&1 != 0, ServerStreams: kind&2 != 0}
	makes := !m.dice.one(4)
	m.makes = makes && !m.dice.one(4)
	m.swallows = m.dice.one(8)
	m.wraps = m.dice.one(4)
	m.prefetches, m.hides = m.dice.one(8), m.dice.one(8)
	m.limit = m.dice.roll(4)
	if m.limit == 3 {
		m.limit = 100
	}
	m.set.Resumes = kind == 2 && m.dice.one(3)
	w := &m.accounts
	w.open = map[int64]bool{}
	m.engineSet = attempts.Settings{Policy: p, Deadline: attempts.Never, Uploads: true, Safe: true, Budget: w, Slots: slots{w}, Breaker: breaker{w}}
	if m.dice.one(2) {
		m.engineSet.Method = load{w}
	}
	m.set.Races = p.Parallel() && !m.set.ClientStreams && makes && p.MaxAttempts() > 1
	m.engineSet.Alone = !m.set.Races
	if slow := p.Hedge() != nil || p.PerAttemptTimeout() > 0; !slow && !m.set.Resumes && len(*m.dice)%4 != 0 {
		m.late, m.engineSet.Breaker = true, nil
	}
	m.tells = m.dice.one(2)
}

// script chooses the application's calls: senders, a receiver, and others.
func (m *model) script() {
	var sends []Kind
	n := 1
	if m.set.ClientStreams {
		n = m.dice.roll(4)
	}
	for range n {
		sends = append(sends, SendMsg)
	}
	if !m.dice.one(6) {
		sends = append(sends, CloseSend)
	}
	m.spawn("sender", sends...)
	m.receiver = m.spawn("receiver", slices.Repeat([]Kind{RecvMsg}, m.dice.roll(8))...)
	if m.late && len(*m.dice)%4 != 0 {
		return // the others need the engine
	}
	for range m.dice.roll(3) {
		m.spawn("header", Header)
	}
	if m.dice.one(3) {
		m.spawn("context", Context)
	}
}
