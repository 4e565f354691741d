// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// entry is what the calls of a method at a target need. It never changes. New rules or switches make it stale; its balance and its
// record outlive it.
type entry struct {
	rules      *rules
	switches   *switches
	policy     *decision.Policy
	mode       policy.Mode // the strictest of the policy file's, the policy's and the switches'
	percent    float64     // of the calls; the others are off
	target     string      // canonical
	name       string      // the method's, in what outlives the call: see keptName
	budget     budget.Budget
	kept       *keptBalance    // the same; nil for another one
	record     *methods.Method // nil if the table has no place
	known      *methods.Known  // the same, as the policy's calls see it; nil: they need it not
	most       int             // attempts of a call
	timeout    time.Duration   // of an attempt
	asks       bool            // the engine starts before the first attempt, since breaker or admission are asked
	admits     bool            // admission is asked, with each call's own criticality
	timed      bool            // a first attempt may be slow
	parallel   bool            // attempts may run in parallel
	headers    bool            // headers commit
	prepares   bool            // calls have a timeout or a key
	grpcsCodec bool            // a call without an option for a codec has gRPC's own
	limits     []grpc.CallOption
}

// entry returns the entry for a call that begins now. own is the policy that the caller gave, or nil. It looks at last before it
// asks the table.
func (r *Retrier) entry(last *lastSlot, cc *grpc.ClientConn, method string, static bool, own *decision.Policy, now time.Duration) *entry {
	key := entryKey{method: method}
	if cc != nil {
		key.target = cc.Target()
	}
	s := last.slot
	if last.of != &r.entries || last.key != key || static && !s.static || !s.touch(now) {
		s = r.entries.find(key, cc, static, now)
		if *last = (lastSlot{&r.entries, key, s}); s == nil {
			*last, s = lastSlot{}, newSlot(cc, method, static)
		}
	}
	cached := &s.usual
	if own != nil {
		cached = &s.own
	}
	e := cached.Load()
	if e == nil || e.rules != r.rules.Load() || e.switches != r.switches.Load() || own != nil && e.policy != own ||
		e.kept != nil && (e.kept.evicted() || e.kept.counted.target == otherTarget) { // there may be a place for its own balance
		e = r.newEntry(s, cc, method, own)
		cached.Store(e)
	}
	return e
}

func (r *Retrier) newEntry(s *slot, cc *grpc.ClientConn, method string, own *decision.Policy) *entry {
	of := r.rules.Load()
	e := &entry{
		rules: of, switches: r.switches.Load(), policy: cmp.Or(own, r.lookup(of, cc, method)),
		target: s.target, name: s.name, record: s.record, budget: budget.Unlimited, grpcsCodec: usesGRPCsCodec(nil),
	}
	if e.mode, e.percent = of.modeOf(method); own != nil {
		e.mode, e.percent = max(e.mode, own.Mode()), min(e.percent, own.Percent())
	}
	p := e.policy
	e.most, e.timeout = min(p.MaxAttempts(), of.set.Config().MaxAttemptsLimit), p.PerAttemptTimeout()
	e.admits = p.Refuses()
	e.asks = e.admits || r.breaker != nil
	e.timed, e.parallel, e.headers = p.Watched(), p.Parallel(), p.CommitsOnHeaders()
	e.prepares = p.Spec().Timeout > 0 || p.IdempotencyKey() != ""
	if e.record != nil && (e.admits || e.policy.MaxAttempts() > 1) {
		known := e.record.For(e.policy, "", e.mode == policy.ModeEnforce, clock.Now())
		e.known = &known
	}
	e.mode = max(e.mode, e.switches.modeFor(method))
	if e.limits = limitsOf(e.policy.Spec(), nil); e.mode != policy.ModeOff {
		user := budgetUser{target: e.target, shadow: e.mode == policy.ModeObserve}
		e.budget = r.findBudget(of, e.policy, user, func(of *rules) string { return r.serviceOf(of, e.policy, s) })
		e.kept, _ = e.budget.(*keptBalance)
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

// Bounds of the table of entries, in bytes: for methods that generated code calls, and for methods whose names may come from
// outside, as in a proxy. So the latter never evict one of the client's own methods.
const (
	staticBytes = 4 << 20
	otherBytes  = 1 << 20
	slotBytes   = 1 << 10 // of a slot with its entry and record, without names
	mostTargets = 1 << 10
)

// entryKey names a method at a target.
type entryKey struct{ target, method string }

func (k entryKey) bytes() int { return len(k.target) + len(k.method) + slotBytes }

// slot is the place of a method in the table. Spellings of one target share it.
type slot struct {
	target string // canonical
	name   string // of the method, as in entry
	static bool   // the name is a constant of the program
	record *methods.Method
	usual  atomic.Pointer[entry] // of calls with the Retrier's policy; nil if none has called it since a reload
	own    atomic.Pointer[entry] // of calls with the last policy that a caller gave
	used   atomic.Int64          // the second in which it was used last, or evicted
}

// evicted means that a slot isn't in the table any more.
const evicted = math.MinInt64

// touch records the use of a slot, unless it was evicted.
func (s *slot) touch(now time.Duration) bool {
	used, second := s.used.Load(), int64(now/time.Second) // every call runs this
	return used == second || used != evicted && s.used.CompareAndSwap(used, second)
}

// lastSlot is what the last call with the same memory has found, because programs often repeat a call.
type lastSlot struct {
	of   *entries
	key  entryKey
	slot *slot
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

// runs reports whether attempts are counted as running.
func (s *slot) runs() bool {
	g := s.record.Gate()
	return g != nil && g.State().Running > 0
}

// entries is a bounded table of slots. The zero value is empty. It is safe for concurrent use. From the third lookup of a method
// on, a lookup takes no lock and allocates nothing: the second one copies the table with all new slots, because methods come
// once and calls often.
//
// A full table drops the least recently used slots, to the second, but none with attempts that
// admission counts as running, and none that was used in the current second. So a flood of new names finds no place,
// and its calls have no record.
type entries struct {
	mu        sync.Mutex // guards changes
	static    rows
	others    rows
	responses map[string]*latency.Responses // by target, which methods with older records don't share; guarded by mu
}

// rows are slots.
type rows struct {
	all   atomic.Pointer[map[entryKey]*slot] // without the new ones
	new   map[entryKey]*slot                 // those that were looked up once; guarded by entries.mu, like all below
	bytes int
	full  int64 // the end of the second in which there is no place for others
}

func (r *rows) find(key entryKey) *slot {
	if all := r.all.Load(); all != nil {
		return (*all)[key]
	}
	return nil
}

// find returns a slot, or nil if there is no place for it.
func (t *entries) find(key entryKey, cc *grpc.ClientConn, static bool, now time.Duration) *slot {
	var s *slot
	if all := t.static.all.Load(); all != nil {
		s = (*all)[key]
	}
	if s == nil {
		s = t.findOther(key, cc, static, now)
	}
	if s != nil {
		s.touch(now)
	}
	return s
}

// anyMethod reports whether is holds for the name of any method.
func (t *entries) anyMethod(is func(method string) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range []*rows{&t.static, &t.others} {
		r.change(func(map[entryKey]*slot) {}) // adds the new ones
		for key := range *r.all.Load() {
			if is(key.method) {
				return true
			}
		}
	}
	return false
}

// findOther finds a slot that isn't among the static ones, or adds it.
func (t *entries) findOther(key entryKey, cc *grpc.ClientConn, static bool, now time.Duration) *slot {
	if !static {
		if s := t.others.find(key); s != nil {
			return s
		}
	}
	if len(key.method) > longestName {
		return nil
	}
	return t.insert(key, newSlot(cc, key.method, static), now)
}

// insert adds a slot under its canonical target and under the caller's spelling, unless it is there.
func (t *entries) insert(key entryKey, s *slot, now time.Duration) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if canonical := (entryKey{s.target, s.name}); canonical != key {
		if s = t.insertAs(canonical, s, now); s == nil {
			return nil
		}
	}
	return t.insertAs(key, s, now)
}

// insertAs adds a slot under a key, or returns the one that is there. A method that moves from the names from outside to the static
// ones keeps its record. t.mu must be held.
func (t *entries) insertAs(key entryKey, s *slot, now time.Duration) *slot {
	r, most := &t.others, otherBytes
	if s.static {
		r, most = &t.static, staticBytes
	}
	if t.static.new[key] != nil || r.new[key] != nil {
		t.static.change(nil)
		r.change(nil)
	}
	if known := cmp.Or(t.static.find(key), r.find(key)); known != nil {
		return known
	}
	if r.bytes+key.bytes() > most && r.full != second(now)+1 {
		r.change(func(all map[entryKey]*slot) { evict(all, now) })
	}
	if r.bytes+key.bytes() > most {
		r.full = second(now) + 1
		return nil
	}
	if moved := cmp.Or(t.others.find(key), t.others.new[key]); moved != nil {
		s.record = moved.record
		moved.used.Store(evicted)
		t.others.change(func(all map[entryKey]*slot) { delete(all, key) })
	}
	if s.record == nil {
		s.record = methods.New(t.responsesOf(s.target))
		s.used.Store(second(now)) // another call may evict immediately what was not used
	}
	if r.new == nil {
		r.new = map[entryKey]*slot{}
	}
	r.new[key] = s
	r.bytes += key.bytes()
	return s
}

// responsesOf returns the responses that the methods of a target share. t.mu must be held.
func (t *entries) responsesOf(target string) *latency.Responses {
	if t.responses == nil || len(t.responses) >= mostTargets {
		t.responses = map[string]*latency.Responses{}
	}
	if t.responses[target] == nil {
		t.responses[target] = new(latency.Responses)
	}
	return t.responses[target]
}

// change copies the slots with the new ones, and applies edit, if not nil, to the copy. entries.mu must be held.
func (r *rows) change(edit func(all map[entryKey]*slot)) {
	if edit == nil && len(r.new) == 0 {
		return
	}
	all := map[entryKey]*slot{}
	if before := r.all.Load(); before != nil {
		all = maps.Clone(*before)
	}
	maps.Copy(all, r.new)
	if edit != nil {
		edit(all)
	}
	r.bytes = 0
	for key := range all {
		r.bytes += key.bytes()
	}
	r.all.Store(&all)
	r.new = nil
}

// evict drops the slots that were last used in the same second as the least recently used one, unless that is the current
// second.
func evict(all map[entryKey]*slot, now time.Duration) {
	oldest := second(now)
	for _, s := range all {
		if used := s.used.Load(); used < oldest && !s.runs() {
			oldest = used
		}
	}
	maps.DeleteFunc(all, func(_ entryKey, s *slot) bool {
		if oldest < second(now) && !s.runs() {
			s.used.CompareAndSwap(oldest, evicted)
		}
		return s.used.Load() == evicted // one slot may have two keys
	})
}

// each returns the slots of the table, each one once.
func (t *entries) each() iter.Seq[*slot] {
	return func(yield func(*slot) bool) {
		t.mu.Lock()
		t.static.change(nil)
		t.others.change(nil)
		t.mu.Unlock()
		for _, r := range []*rows{&t.static, &t.others} {
			if all := r.all.Load(); all != nil {
				for key, s := range *all {
					if key == (entryKey{s.target, s.name}) && !yield(s) {
						return
					}
				}
			}
		}
	}
}

// drop drops the entries of all slots: rules are not kept for the sake of methods that nobody calls any more.
func (t *entries) drop() {
	for s := range t.each() {
		s.usual.Store(nil)
		s.own.Store(nil)
	}
}

// admissions returns a reading of each method with admission REFUSE that has had calls, ordered by target and
// method.
func (r *Retrier) admissions() []AdmissionState {
	var list []AdmissionState
	for s := range r.entries.each() {
		if gate := s.record.Gate(); gate != nil {
			is := gate.State()
			list = append(list, AdmissionState{s.target, s.name, is.Running, is.Refused, is.WouldRefuse})
		}
	}
	slices.SortFunc(list, func(a, b AdmissionState) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Method, b.Method))
	})
	return list
}
