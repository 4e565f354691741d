// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
)

// A target is forgotten when none of its calls waits.
func TestWaitLimit_Targets(t *testing.T) {
	l := waitLimit{slots: 4}
	waits := targetSlots{&l, "waits"}
	waits.TakeSlot(attempts.WaitBackoff)
	for n := range 100 {
		other := targetSlots{&l, strconv.Itoa(n)}
		if !other.TakeSlot(attempts.WaitAnswer) {
			t.Fatal("no slot, though three of four are free")
		}
		other.ReleaseSlot(attempts.WaitAnswer)
	}
	if len(l.targets) != 1 || l.targets["waits"] != 1 {
		t.Errorf("%v; want the target that waits", l.targets)
	}
}

// Calls of many methods, or with long names, don't make the map grow in which most calls find their entry.
func TestCurrentEntries_Bounded(t *testing.T) {
	t.Parallel()
	r := testkit.Must(New(testkit.Must(compiled.NewSet(spec.Config{}))(t)))(t)
	for _, method := range []string{"/a.B/M0", "/a.B/" + strings.Repeat("M", longestName)} {
		r.entry(nil, "", method, nil, 0)
		if n := len(r.current.Load().of); n != 1 {
			t.Errorf("%d current entries after a call of %.10s; want one", n, method)
		}
	}
	for i := range 2 * mostCurrent {
		method := fmt.Sprint("/a.B/M", i)
		if e := r.entry(nil, "", method, nil, 0); e.name != method || r.entry(nil, "", method, nil, 0) != e {
			t.Fatalf("%s has the entry of %s, or another one with each call", method, e.name)
		}
	}
	if n := len(r.current.Load().of); n != mostCurrent {
		t.Errorf("%d current entries; want %d", n, mostCurrent)
	}
}

// A method that has left the table for others is known again with its next call, and has one record.
func TestCurrentEntries_ForgottenMethod(t *testing.T) {
	r := testkit.Must(New(testkit.Must(compiled.NewSet(spec.Config{}))(t)))(t)
	r.methods.Most = 8
	own := testkit.Must(compiled.NewPolicy(spec.Policy{}))(t)
	r.entry(nil, "", "/a.B/M", nil, 0)
	for i := range 40 {
		r.entry(nil, "", fmt.Sprint("/a.C/M", i), nil, 0)
	}
	if r.knowsService("a.B") {
		t.Fatal("the method has not left the table")
	}
	e, withOwn := r.entry(nil, "", "/a.B/M", nil, 0), r.entry(nil, "", "/a.B/M", own, 0)
	if !r.knowsService("a.B") || e.record != withOwn.record || r.entry(nil, "", "/a.B/M", nil, 0).record != e.record {
		t.Error("the method is unknown, or has two records, each with its own evidence and admission")
	}
}

// A call whose entry isn't among the current ones finds it without a copy of these.
func TestCurrentEntries_Allocations(t *testing.T) {
	r := testkit.Must(New(testkit.Must(compiled.NewSet(spec.Config{}))(t)))(t)
	method := ""
	for i := range mostCurrent + 1 {
		method = fmt.Sprint("/a.B/M", i)
		r.entry(nil, "", method, nil, 0)
	}
	if n := testing.AllocsPerRun(100, func() { r.entry(nil, "", method, nil, 0) }); n > 0 {
		t.Errorf("%v allocations; want none", n)
	}
}

// Marks of incoming calls leave with them, also those of calls that outlive the handler: else every later call would look for marks.
func TestInbound_MarksLeave(t *testing.T) { // not parallel: marks of other calls count as well
	before := allMarks.Load()
	in := new(inboundCall)
	set := false
	_ = in.serve(func() error {
		in.noteGaveUp("/a.B/Get", 0)
		in.noteGaveUp("/a.B/List", 0)
		return errNotMade
	}, func(metadata.MD) { set = true })
	in.noteGaveUp("/a.B/Get", 0)
	if !set || allMarks.Load() != before {
		t.Errorf("trailer set: %v, %d marks more than before; want none", set, allMarks.Load()-before)
	}
}
