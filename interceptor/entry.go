// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/admitting"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// entry is what the calls of a method at a target need. It never changes. New rules or switches make it stale; its balance and its
// record outlive it.
type entry struct {
	made     time.Duration // when, from which rules and switches: see stale
	rules    *rules
	switches *switches

	target string // canonical
	name   string // the method's, in what outlives the call: see keptName

	policy *policy.Policy
	mode   policy.Mode // of the calls: the strictest of the policy file's, the policy's and the switches'
	most   int         // attempts of a call
	safe   bool        // the policy, or the method's descriptor, declares it idempotent
	limits limits

	budget    budget.Budget
	responses attempts.Method // what the method's last responses have shown; nil: the policy doesn't need it, or the table has no place for it
	slots     targetSlots     // for calls that wait between attempts
	gate      admitting.Gate  // admission; nil: not asked
	asks      bool            // the engine starts before the first attempt, since breaker or admission are asked

	defaultTimeout   time.Duration // of unary calls without a deadline; 0: none
	warnedNoDeadline *atomic.Bool  // that unary calls have no deadline: the slot's
	grpcsCodec       bool          // a call without an option for a codec has gRPC's own
}

// stale reports whether a call that begins now, with the policy that its caller gave or nil, needs a new entry.
func (e *entry) stale(r *Retrier, callers *policy.Policy, now time.Duration) bool {
	if e.rules != r.rules.Load() || e.switches != r.switches.Load() || callers != nil && e.policy != callers {
		return true
	}
	b, ok := e.budget.(*balance)
	return ok && b.stale(e.made, now)
}

// entry returns the entry for a call that begins now. callers is the policy that the caller gave, or nil.
func (r *Retrier) entry(cc *grpc.ClientConn, method string, static bool, callers *policy.Policy, now time.Duration) *entry {
	key := entryKey{method: method}
	if cc != nil {
		key.target = cc.Target()
	}
	s := r.entries.find(key, cc, static, now)
	if s == nil {
		s = newSlot(cc, method, static)
		r.warnOfFullTable(s)
	}
	cached := &s.ofRetrier
	if callers != nil {
		cached = &s.ofCaller
	}
	e := cached.Load()
	if e == nil || e.stale(r, callers, now) {
		e = r.newEntry(s, method, callers, now)
		cached.Store(e)
	}
	return e
}

// warnOfFullTable warns that the table of entries has no place for a method. Names that are too long never have one.
func (r *Retrier) warnOfFullTable(s *slot) {
	switch {
	case s.name == longName:
	case s.static:
		r.warnOnce(&manyMethods, "", "", mostStatic)
	default:
		r.warnOnce(&manyOutsideMethods, "", "", mostOthers)
	}
}

func (r *Retrier) newEntry(s *slot, method string, callers *policy.Policy, now time.Duration) *entry {
	of := r.rules.Load()
	e := &entry{
		made: now, rules: of, switches: r.switches.Load(), policy: cmp.Or(callers, of.set.Lookup(method), r.single),
		target: s.target, name: s.name, budget: budget.Unlimited, grpcsCodec: usesGRPCsCodec(nil),
		defaultTimeout: r.defaultTimeoutBy(of), warnedNoDeadline: &s.warnedNoDeadline,
	}
	e.mode = policy.StrictestMode(of.modeOf(method), e.switches.modeFor(method))
	if callers != nil {
		e.mode = policy.StrictestMode(e.mode, callers.Mode())
	}
	p := e.policy
	e.safe, e.slots = of.set.Safe(p, method), targetSlots{&r.waitLimit, e.target}
	e.most = min(p.MaxAttempts(), of.set.Config().MaxAttemptsLimit)
	e.gate = r.admissionOf(e, s.record)
	e.asks = e.gate != nil || r.breaker != nil
	if s.record != nil && (e.gate != nil || e.policy.MaxAttempts() > 1) {
		known := s.record.method.For(e.policy, now)
		e.responses = &known
		if !known.Follows(e.policy) {
			r.warnOnce(&manyQuantiles, e.name, e.name)
		}
	}
	e.limits = limitsOf(p)
	if e.mode != policy.ModeOff {
		r.warnOfUnknownBudget(of, p)
	}
	if e.mode == policy.ModeEnforce { // in the other modes, calls neither earn nor spend
		e.budget = r.budgetFor(of, p, budgetUser{target: e.target, service: r.serviceOf(p, s)})
	}
	return e
}

// Names over longestName bytes are not kept: a proxy passes on whatever its callers choose. Their calls have a policy, and
// no memory: events, warnings and tables have longName instead.
const (
	longestName = 256
	longName    = "(a name over 256 bytes)"
)

func keptName(method string) string {
	if len(method) > longestName {
		return longName
	}
	return method
}

// Bounds of the table of entries: for methods that generated code calls, and for methods whose names may come from
// outside, as in a proxy. So the latter never evict one of the client's own methods. A method takes about 1 KiB at each target. The
// client's own are as many as it has connections and methods, and a connection takes more memory than the entries of its methods.
const (
	mostStatic = 1 << 14
	mostOthers = 1 << 10
)

// entryKey names a method at a target.
type entryKey struct{ target, method string }

// slot is the place of a method in the table. Spellings of one target share it.
type slot struct {
	target string // canonical
	name   string // of the method, as in entry
	static bool   // the name is a constant of the program
	record *record
	used   atomic.Int64 // the second in which it was used last

	ofRetrier atomic.Pointer[entry] // of calls with the Retrier's policy; nil if none has called it since a reload
	ofCaller  atomic.Pointer[entry] // of calls with the last policy that a caller gave

	warnedNoDeadline atomic.Bool
}

// touch records the use of a slot. Every call runs it, and rarely writes.
func (s *slot) touch(now time.Duration) {
	if s.used.Load() != second(now) {
		s.used.Store(second(now))
	}
}

// newSlot returns a slot outside of the table, without a record.
func newSlot(cc *grpc.ClientConn, method string, static bool) *slot {
	s := &slot{name: keptName(method), static: static}
	if cc != nil {
		s.target = cc.CanonicalTarget()
	}
	return s
}

func second(now time.Duration) int64 { return int64(now / time.Second) }

// key returns the slot's own key. Under others it has other spellings of its target.
func (s *slot) key() entryKey { return entryKey{s.target, s.name} }

// entries is a bounded table of slots. It is safe for concurrent use. Looking up a slot takes no lock and allocates nothing.
//
// A full table drops the least recently used slots, to the second, but none with attempts that
// admission counts as running, and none that was used in the current second. So a flood of new names finds no place,
// and its calls have no record.
type entries struct {
	slots sync.Map // *slot by entryKey: of a plain map, every call would take the lock

	mu     sync.Mutex // guards changes of slots, and all below
	static part
	others part
}

// part is the part of the table for methods of generated code, or for others.
type part struct {
	slots     int
	spellings int   // keys other than the slots' own; at most as many as slots
	full      int64 // the end of the second in which there is no place for others
}

// count counts a slot under one of its keys, or with -1 discounts it.
func (p *part) count(s *slot, key entryKey, n int) {
	if key == s.key() {
		p.slots += n
	} else {
		p.spellings += n
	}
}

func (t *entries) load(key entryKey) *slot {
	found, _ := t.slots.Load(key)
	s, _ := found.(*slot)
	return s
}

// find returns a slot, or nil if there is no place for it.
func (t *entries) find(key entryKey, cc *grpc.ClientConn, static bool, now time.Duration) *slot {
	s := t.load(key)
	if s == nil || static && !s.static {
		if len(key.method) > longestName {
			return nil
		}
		s = t.insert(key, newSlot(cc, key.method, static), now)
	}
	if s != nil {
		s.touch(now)
	}
	return s
}

// anyMethod reports whether is holds for the name of any method.
func (t *entries) anyMethod(is func(method string) bool) bool {
	for s := range t.each() {
		if is(s.name) {
			return true
		}
	}
	return false
}

// insert adds a slot under its canonical target and under the caller's spelling, unless it is there.
func (t *entries) insert(key entryKey, s *slot, now time.Duration) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := s.key()
	s = t.insertAs(own, s, now)
	if s == nil || own == key {
		return s
	}
	return cmp.Or(t.insertAs(key, s, now), s)
}

// insertAs adds a slot under a key, or returns the one that is there. A method that moves from the names from outside to the static
// ones keeps its record. t.mu must be held.
func (t *entries) insertAs(key entryKey, s *slot, now time.Duration) *slot {
	known := t.load(key)
	if known != nil && (known.static || !s.static) {
		return known
	}
	p, most := t.partOf(s)
	p.count(s, key, 1)
	if max(p.slots, p.spellings) > most && p.full != second(now)+1 {
		t.evict(s.static, now)
	}
	if max(p.slots, p.spellings) > most {
		p.count(s, key, -1)
		p.full = second(now) + 1
		return nil
	}
	if known != nil {
		s.record = known.record
		t.others.count(known, key, -1)
	}
	if s.record == nil {
		s.record = &record{method: methods.New()}
		s.used.Store(second(now)) // another call may evict immediately what was not used
	}
	t.slots.Store(key, s)
	return s
}

// partOf returns the part of the table that has a slot, and how many slots it may have. t.mu must be held.
func (t *entries) partOf(s *slot) (p *part, most int) {
	if s.static {
		return &t.static, mostStatic
	}
	return &t.others, mostOthers
}

// evict drops the slots of one part that were last used in the same second as the least recently used one, unless that is the
// current second. A call that has found one of them goes on with it. t.mu must be held.
func (t *entries) evict(static bool, now time.Duration) {
	oldest := second(now)
	idle := map[*slot]int64{} // when they were used last
	for _, s := range t.all() {
		if s.static != static || s.record.runs() {
			continue
		}
		idle[s] = s.used.Load()
		oldest = min(oldest, idle[s])
	}
	if oldest == second(now) {
		return
	}
	for key, s := range t.all() {
		if used, isIdle := idle[s]; isIdle && used == oldest { // one slot may have several keys
			t.remove(key, s)
		}
	}
}

// remove removes a slot under one of its keys. t.mu must be held.
func (t *entries) remove(key entryKey, s *slot) {
	t.slots.Delete(key)
	p, _ := t.partOf(s)
	p.count(s, key, -1)
}

// all returns the slots under all their keys.
func (t *entries) all() iter.Seq2[entryKey, *slot] {
	return func(yield func(entryKey, *slot) bool) {
		t.slots.Range(func(k, v any) bool {
			key, _ := k.(entryKey)
			s, _ := v.(*slot)
			return yield(key, s)
		})
	}
}

// each returns the slots of the table, each one once.
func (t *entries) each() iter.Seq[*slot] {
	return func(yield func(*slot) bool) {
		for key, s := range t.all() {
			if key == s.key() && !yield(s) {
				return
			}
		}
	}
}

// drop drops the entries of all slots: rules are not kept for the sake of methods that nobody calls any more.
func (t *entries) drop() {
	for s := range t.each() {
		s.ofRetrier.Store(nil)
		s.ofCaller.Store(nil)
	}
}
