// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"maps"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/accounts"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// entry is what the calls of a method at a target need, with one policy. It never changes. New rules or switches make it stale; its balance
// and its record outlive it.
type entry struct {
	*record

	generation uint64 // the Retrier's, before the entry was made
	rules      *rules
	callers    *policy.Policy // the policy that the caller gave; nil: the Retrier has the calls'

	policy   *policy.Policy
	declares *policy.Policy // whose idempotency and key hold for the method; see declarationOf
	mode     policy.Mode    // of the calls: the strictest of the policy file's, the policy's and the switches'
	most     int            // attempts of a call
	safe     bool           // its declaration, or the method's descriptor, says that it is idempotent
	settings grpcSettings

	budget    budget.Budget
	responses attempts.Method // what the method's last responses have shown; nil: the policy doesn't need it, or its name is too long
	slots     targetSlots     // for calls that wait between attempts
	gate      admitting.Gate  // admission; nil: not asked
	plain     bool            // its calls need nothing before their first attempt; see unary.isPlain

	defaultTimeout time.Duration // of unary calls without a deadline; 0: none
	codec          codecKind     // of a call without an option for a codec
}

// stale reports whether a call that begins now needs a new entry: rules or switches have changed, or a balance or record has left its
// table, perhaps the entry's own.
func (e *entry) stale(r *Retrier) bool { return e.generation != r.generation.Load() }

// entry returns the entry for a call that begins now. target is that of a call without a connection. callers is the policy that the caller
// gave, or nil.
func (r *Retrier) entry(cc *grpc.ClientConn, target, method string, callers *policy.Policy, now time.Duration) *entry {
	key := methodKey{target, method}
	if cc != nil {
		key.target = cc.Target()
	}
	if callers == nil {
		if e := r.findCurrent(key); e != nil {
			return e
		}
	}
	generation := r.generation.Load() // before all that changes with it
	m := r.methods.Find(key)
	if m == nil {
		m = r.newRecord(key, cc)
	}
	e := m.entryWith(callers)
	if e == nil || e.stale(r) {
		e = r.newEntry(m, generation, method, callers, now)
		m.storeEntry(e)
	}
	if callers == nil {
		r.addCurrent(key, e)
	}
	return e
}

// currentEntries are the first entries of one generation. Most calls find theirs here, with one lookup in a map that never changes: who adds
// an entry makes a copy.
type currentEntries struct {
	generation uint64
	of         map[methodKey]*entry
}

// mostCurrent bounds the current entries: calls of further methods find theirs in the table.
const mostCurrent = 256

// findCurrent returns the current entry of a method, or nil, and notes the method's use.
func (r *Retrier) findCurrent(key methodKey) *entry {
	current := r.current.Load()
	if current == nil || current.generation != r.generation.Load() {
		return nil
	}
	e := current.of[key]
	if e != nil {
		r.methods.Touch(e.record)
	}
	return e
}

// addCurrent adds an entry to the current ones, if there is room. Of two calls that do so at once, one adds nothing.
func (r *Retrier) addCurrent(key methodKey, e *entry) {
	before := r.current.Load()
	var known map[methodKey]*entry
	if before != nil && before.generation == e.generation {
		known = before.of
	}
	if len(known) >= mostCurrent || e.name == longName {
		return
	}
	after := &currentEntries{e.generation, map[methodKey]*entry{key: e}}
	maps.Copy(after.of, known)
	r.current.CompareAndSwap(before, after)
}

func (r *Retrier) newEntry(m *record, generation uint64, method string, callers *policy.Policy, now time.Duration) *entry {
	of := r.rules.Load()
	e := &entry{
		record: m, generation: generation, rules: of, callers: callers, policy: cmp.Or(callers, of.set.Lookup(method), r.single),
		budget: budget.Unlimited, codec: codecOf(nil), defaultTimeout: r.defaultTimeoutBy(of),
	}
	e.mode = policy.StrictestMode(of.modeOf(method), r.switches.Load().modeFor(method))
	if callers != nil {
		e.mode = policy.StrictestMode(e.mode, callers.Mode())
	}
	p := e.policy
	e.declares = r.declarationOf(of, p, method)
	e.safe, e.slots = of.set.Safe(e.declares, method), targetSlots{&r.waitLimit, e.target}
	e.most = min(p.MaxAttempts(), of.set.Compiled().MaxAttemptsLimit)
	e.gate = r.admissionOf(e)
	if m.method != nil && (e.gate != nil || e.policy.MaxAttempts() > 1) {
		known := m.method.For(compiled.Of(e.policy).Quantile(), now)
		e.responses = &known
		if !known.Follows(compiled.Of(e.policy).Quantile()) {
			r.warnOnce(&manyQuantiles, e.name, e.name)
		}
	}
	e.settings = grpcSettingsOf(p)
	// No time, key or record of backends in the context, no copy of a message, and nobody's permission.
	e.plain = p.Timeout() == 0 && e.defaultTimeout == 0 && e.declares.IdempotencyKey() == "" && of.elsewhere == nil &&
		e.codec == codecOfGRPC && r.repeats == nil && !p.Watched() && e.gate == nil && r.breaker == nil
	if e.mode != policy.ModeOff {
		r.warnOfUnknownBudget(of, p)
	}
	if e.mode == policy.ModeEnforce { // in the other modes, calls neither earn nor spend
		e.budget = r.budgetFor(of, p, accounts.User{Target: e.target, Service: serviceOf(e.name)})
	}
	return e
}

// declarationOf returns the policy that says whether a method is idempotent, and which key its calls send: p, unless a caller has borrowed
// it from an entry for other methods.
func (r *Retrier) declarationOf(of *rules, p *policy.Policy, method string) *policy.Policy {
	if p.Declares(method) {
		return p
	}
	return cmp.Or(of.set.Lookup(method), r.single)
}

// Nothing outlives a call with a name over longestName bytes: a proxy passes on whatever its callers choose. The call has a policy, and its
// method no record of responses. Events, warnings and tables have longName instead.
const (
	longestName = 256
	longName    = "(a name over 256 bytes)"
)

func boundedName(method string) string {
	if len(method) > longestName {
		return longName
	}
	return method
}

// methodKey names a method at a target, as the program spells that.
type methodKey struct{ target, method string }

// record is what a Retrier remembers of a method at a target. It outlives the rules, and the entries of its calls.
type record struct {
	accounts.Use

	target        string                         // canonical
	name          string                         // of the method, as boundedName has it
	method        *evidence.Method               // nil if the name is too long
	admissionGate atomic.Pointer[admitting.Gate] // nil: no policy with admission so far

	entries          atomic.Pointer[[]*entry] // the newest first
	warnedNoDeadline atomic.Bool              // that unary calls have no deadline
}

// mostEntries bounds the entries of a record: one for calls with the Retrier's policy, and one for each policy that callers give.
const mostEntries = 8

// newRecord returns the record of a method that has none.
func (r *Retrier) newRecord(key methodKey, cc *grpc.ClientConn) *record {
	made := &record{target: key.target, name: boundedName(key.method)}
	if cc != nil {
		made.target = cc.CanonicalTarget()
	}
	if made.name == longName {
		return made
	}
	made.method = evidence.NewMethod()
	current, left := r.methods.Insert(key, made)
	if len(left) > 0 {
		r.generation.Add(1) // else current entries would keep records that have left
		r.warnOnce(&fullTable, "", "", accounts.TableSize)
	}
	return current
}

// entryWith returns the entry of calls with a policy that callers give, or nil for the Retrier's; nil if there is none.
func (m *record) entryWith(callers *policy.Policy) *entry {
	if list := m.entries.Load(); list != nil {
		for _, e := range *list {
			if e.callers == callers {
				return e
			}
		}
	}
	return nil
}

// storeEntry puts an entry in the place of the last one with the same policy of callers. Of two calls that do so at once, one may have to
// make its entry again.
func (m *record) storeEntry(e *entry) {
	list := append(make([]*entry, 0, mostEntries), e)
	if before := m.entries.Load(); before != nil {
		for _, other := range *before {
			if other.callers != e.callers && len(list) < mostEntries {
				list = append(list, other)
			}
		}
	}
	m.entries.Store(&list)
}

// dropEntries drops the entries of all methods. So old rules don't stay in memory for methods without further calls.
func (r *Retrier) dropEntries() {
	r.current.Store(nil)
	for _, m := range r.methods.All() {
		m.entries.Store(nil)
	}
}
