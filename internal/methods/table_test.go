// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

func key(n int) Key { return Key{"dns:///orders", "/acme.Orders/Get" + strconv.Itoa(n)} }

// fill adds methods with numbers from first up to last, exclusive.
func (t *Table) fill(first, last int, static bool, now time.Duration) (found int) {
	for n := first; n < last; n++ {
		if t.Find(key(n), static, now) != nil {
			found++
		}
	}
	return found
}

func count(t *Table) (n int) {
	for range t.All() {
		n++
	}
	return n
}

func TestTable(t *testing.T) {
	t.Parallel()
	var table Table
	one := table.Find(key(1), true, 0)
	for range 2 {
		if got := table.Find(key(1), true, time.Minute); got != one || count(&table) != 1 {
			t.Errorf("%p of %d methods; want %p, which is the only one", got, count(&table), one)
		}
	}
	if got := table.Find(Key{"dns:///stock", key(1).Method}, true, 0); got == one {
		t.Error("the same method at another target is known as one")
	}
}

// The methods that were idle longest are evicted, with those of the same second.
func TestTable_EvictsTheLongestIdle(t *testing.T) {
	t.Parallel()
	var table Table
	table.fill(0, 10, false, 0)
	table.fill(10, 20, false, 999*time.Millisecond)
	table.fill(20, mostOthers, false, time.Second)
	kept, gone := table.Find(key(3), false, 2*time.Second), table.others.find(key(4)) // which a second lookup copies with all new ones
	if got := table.Find(key(mostOthers), false, 3*time.Second); got == nil || count(&table) != mostOthers-19+1 {
		t.Errorf("%p, %d methods; want all but 19 of those of the first second, and one more", got, count(&table))
	}
	if table.Find(key(3), false, 3*time.Second) != kept || !gone.Evicted() || kept.Evicted() {
		t.Error("what was used again is gone, or what was not is there")
	}
}

// A method that was just added counts as used before its first call says so.
func TestTable_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	var table Table
	table.fill(0, mostOthers-1, false, time.Second)
	newest := table.insert(key(mostOthers), false, 2*time.Second)
	if table.Find(key(mostOthers+1), false, 2*time.Second) == nil || newest.Evicted() {
		t.Error("another method has no place, or takes that of the newest")
	}
}

// A flood of names within one second finds no place, and does not evict its own names.
func TestTable_Flood(t *testing.T) {
	t.Parallel()
	var table Table
	if got := table.fill(0, 10*mostOthers, false, time.Minute); got != mostOthers {
		t.Errorf("%d of %d names have a place; want %d", got, 10*mostOthers, mostOthers)
	}
	if table.Find(key(mostOthers), false, time.Minute+time.Second-1) != nil || table.Find(key(mostOthers), false, time.Minute+time.Second) == nil {
		t.Error("there is a place in the same second, or none in the next")
	}
}

func TestTable_StrangersEvictNoStaticMethod(t *testing.T) {
	t.Parallel()
	var table Table
	own := table.Find(key(0), true, 0)
	table.fill(1, 3*mostOthers, false, time.Hour)
	table.fill(3*mostOthers, 6*mostOthers, false, 2*time.Hour)
	if got := table.Find(key(0), false, 2*time.Hour); got != own || own.Evicted() {
		t.Error("a method of the client's own is gone")
	}
}

// A method whose name first came from outside stays the same when generated code calls it.
func TestTable_StrangerBecomesKnown(t *testing.T) {
	t.Parallel()
	var table Table
	m := table.Find(key(0), false, 0)
	if got := table.Find(key(0), true, 0); got != m || count(&table) != 1 {
		t.Errorf("%p of %d methods; want %p, which is the only one", got, count(&table), m)
	}
}

func TestTable_KeepsWhatRuns(t *testing.T) {
	t.Parallel()
	var table Table
	p := decision.New(policy.Spec{Admission: policy.AdmissionRefuse})
	m := table.Find(key(0), false, 0)
	k := m.For(p, policy.CriticalityDefault, true, 0)
	k.Admit(0, time.Second)
	table.fill(1, mostOthers, false, time.Second)
	table.fill(mostOthers, mostOthers+1, false, 2*time.Second)
	if m.Evicted() || table.Find(key(0), false, 0) != m {
		t.Error("a method whose attempt runs is gone")
	}
	k.Left(0, attempts.Lost{})
	table.fill(mostOthers+1, 3*mostOthers, false, 2*time.Second)
	table.fill(mostOthers+1, 3*mostOthers, false, 3*time.Second)
	if !m.Evicted() {
		t.Error("a method that nobody uses is there for ever")
	}
}

func TestTable_AllocatesNothing(t *testing.T) {
	var table Table
	table.Find(key(0), true, 0)
	k, now := key(0), time.Duration(0)
	if n := testing.AllocsPerRun(100, func() {
		now += time.Second
		table.Find(k, false, now)
	}); n != 0 {
		t.Errorf("%v allocations for a look-up; want none", n)
	}
}

func TestTable_Concurrent(t *testing.T) {
	t.Parallel()
	var (
		table Table
		wg    sync.WaitGroup
	)
	p, err := policy.New(policy.Spec{Admission: policy.AdmissionRefuse, Hedge: &policy.HedgeSpec{MaxAttempts: 2}})
	if err != nil {
		t.Fatal(err)
	}
	compiled := decision.New(p.Spec())
	for g := range 4 {
		wg.Go(func() {
			for n := range 3 * mostOthers {
				now := time.Duration(n) * 10 * time.Millisecond
				if m := table.Find(key((n*(g+1))%(2*mostOthers)), n%7 == 0, now); m != nil {
					k := m.For(compiled, policy.CriticalityDefault, true, now)
					k.Sent(now)
					k.Left(now, attempts.Lost{})
				}
			}
		})
	}
	wg.Wait()
	if got := count(&table); got > mostOthers+mostStatic {
		t.Errorf("%d methods; want %d at most", got, mostOthers+mostStatic)
	}
}
