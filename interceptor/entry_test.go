// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/admitting"
	"github.com/stagger-go/stagger/internal/policies"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

func key(n int) entryKey { return entryKey{"", fmt.Sprintf("/acme.Orders/Get%06d", n)} }

func (t *entries) Find(k entryKey, static bool, now time.Duration) *slot {
	return t.find(k, nil, static, now)
}

func (t *entries) has(s *slot) bool {
	return slices.Contains(slices.Collect(t.each()), s)
}

// fill adds methods with numbers from first up to last, exclusive.
func (t *entries) fill(first, last int, static bool, now time.Duration) (found int) {
	for n := first; n < last; n++ {
		if t.Find(key(n), static, now) != nil {
			found++
		}
	}
	return found
}

func count(t *entries) (n int) {
	for range t.each() {
		n++
	}
	return n
}

// The methods that were idle longest are evicted, with those of the same second.
func TestEntries_EvictsTheLongestIdle(t *testing.T) {
	t.Parallel()
	var table entries
	table.fill(0, 10, false, 0)
	table.fill(10, 20, false, 999*time.Millisecond)
	table.fill(20, mostOthers, false, time.Second)
	kept, gone := table.Find(key(3), false, 2*time.Second), table.load(key(4))
	if got := table.Find(key(mostOthers), false, 3*time.Second); got == nil || count(&table) != mostOthers-19+1 {
		t.Errorf("%p, %d methods; want all but 19 of those of the first second, and one more", got, count(&table))
	}
	if table.Find(key(3), false, 3*time.Second) != kept || table.has(gone) || !table.has(kept) {
		t.Error("what was used again is gone, or what was not is there")
	}
}

// A method that was just added counts as used before its first call says so.
func TestEntries_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	var table entries
	table.fill(0, mostOthers-1, false, time.Second)
	newest := table.insert(key(mostOthers), newSlot(nil, key(mostOthers).method, false), 2*time.Second)
	if table.Find(key(mostOthers+1), false, 2*time.Second) == nil || !table.has(newest) {
		t.Error("another method has no place, or takes that of the newest")
	}
}

// A flood of names within one second finds no place, and does not evict its own names.
func TestEntries_Flood(t *testing.T) {
	t.Parallel()
	var table entries
	if got := table.fill(0, 10*mostOthers, false, time.Minute); got != mostOthers {
		t.Errorf("%d of %d names have a place; want %d", got, 10*mostOthers, mostOthers)
	}
	if table.Find(key(mostOthers), false, time.Minute+time.Second-1) != nil || table.Find(key(mostOthers), false, time.Minute+time.Second) == nil {
		t.Error("there is a place in the same second, or none in the next")
	}
}

func TestEntries_StrangersEvictNoStaticMethod(t *testing.T) {
	t.Parallel()
	var table entries
	own := table.Find(key(0), true, 0)
	table.fill(1, 3*mostOthers, false, time.Hour)
	table.fill(3*mostOthers, 6*mostOthers, false, 2*time.Hour)
	if got := table.Find(key(0), false, 2*time.Hour); got != own || !table.has(own) {
		t.Error("a method of the client's own is gone")
	}
}

// A method whose name first came from outside stays the same when generated code calls it.
func TestEntries_StrangerBecomesKnown(t *testing.T) {
	t.Parallel()
	var table entries
	m := table.Find(key(0), false, 0)
	if got := table.Find(key(0), true, 0); got.record != m.record || count(&table) != 1 {
		t.Errorf("%p of %d methods; want %p, which is the only one", got, count(&table), m)
	}
}

// runningCount is a gate that counts attempts, and refuses none.
type runningCount struct{ running atomic.Int64 }

func newCount() admitting.Gate { return new(runningCount) }

func (*runningCount) Open(_, _ time.Duration) bool { return true }

func (c *runningCount) Allow(int, time.Duration, time.Duration, bool) (running int, would bool) {
	return int(c.running.Add(1)), false
}

func (c *runningCount) Done(time.Duration, admitting.End) { c.running.Add(-1) }

func (c *runningCount) State() admitting.State {
	return admitting.State{Running: int(c.running.Load())}
}

func TestEntries_KeepsWhatRuns(t *testing.T) {
	t.Parallel()
	var table entries
	m := table.Find(key(0), false, 0)
	gate := m.record.admission(newCount)
	gate.Allow(1, 0, time.Second, true)
	table.fill(1, mostOthers, false, time.Second)
	table.fill(mostOthers, mostOthers+1, false, 2*time.Second)
	if !table.has(m) || table.Find(key(0), false, 0) != m {
		t.Error("a method whose attempt runs is gone")
	}
	gate.Done(0, admitting.End{})
	table.fill(mostOthers+1, 3*mostOthers, false, 2*time.Second)
	table.fill(mostOthers+1, 3*mostOthers, false, 3*time.Second)
	if table.has(m) {
		t.Error("a method that nobody uses is there for ever")
	}
}

func TestEntries_Concurrent(t *testing.T) {
	t.Parallel()
	var (
		table entries
		wg    sync.WaitGroup
	)
	p := must.Get(policies.New(spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2}}))(t)
	for g := range 4 {
		wg.Go(func() {
			for n := range 3 * mostOthers {
				now := time.Duration(n) * 10 * time.Millisecond
				if m := table.Find(key((n*(g+1))%(2*mostOthers)), n%7 == 0, now); m != nil {
					k := m.record.method.For(p, now)
					k.Outlasted(now, time.Second)
					gate := m.record.admission(newCount)
					gate.Allow(2, now, time.Second, true)
					gate.Done(now, admitting.End{})
				}
			}
		})
	}
	wg.Wait()
	if got := count(&table); got > 3*mostOthers {
		t.Errorf("%d methods; want %d at most", got, 3*mostOthers)
	}
}

// Rules that a reload has replaced are not kept for the sake of methods that nobody calls any more.
func TestEntries_Reload(t *testing.T) {
	t.Parallel()
	set := must.Get(policies.NewSet(spec.Config{}))(t)
	r := must.Get(New(set))(t)
	recorded := func() *record { return r.entries.load(entryKey{method: key(1).method}).record }
	old := r.entry(nil, key(1).method, true, nil, 0)
	first := recorded()
	if again := r.entry(nil, key(1).method, true, nil, 0); again != old {
		t.Error("a call makes its entry again")
	}
	must.Do(t, r.Reload(set))
	for s := range r.entries.each() {
		if s.ofRetrier.Load() != nil {
			t.Error("an old entry is kept")
		}
	}
	fresh := r.entry(nil, key(1).method, true, nil, 0)
	if fresh == old || fresh.rules == old.rules || recorded() != first {
		t.Error("an entry has old rules, or a new record")
	}
	must.Do(t, r.SetMode(ModeSwitch{Mode: policy.ModeOff}))
	if e := r.entry(nil, key(1).method, true, nil, 0); e.mode != policy.ModeOff || recorded() != first {
		t.Errorf("mode %s after a switch, or a new record", e.mode)
	}
}

// A target is forgotten when none of its calls waits.
func TestWaitLimit_Targets(t *testing.T) {
	l := waitLimit{slots: 4}
	waits := targetSlots{&l, "waits"}
	waits.TakeSlot()
	for n := range 100 {
		other := targetSlots{&l, strconv.Itoa(n)}
		if !other.TakeSlot() {
			t.Fatal("no slot, though three of four are free")
		}
		other.ReleaseSlot()
	}
	if len(l.targets) != 1 || l.targets["waits"] != 1 {
		t.Errorf("%v; want the target that waits", l.targets)
	}
}
