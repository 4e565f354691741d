// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"strconv"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/attempts"
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
