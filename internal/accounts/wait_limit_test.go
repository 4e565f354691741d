// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"strconv"
	"testing"
)

// A target is forgotten when none of its calls waits.
func TestWaitLimit_Targets(t *testing.T) {
	l := WaitLimit{slots: 4}
	waits := TargetSlots{&l, "waits"}
	waits.TakeSlot()
	for n := range 100 {
		other := TargetSlots{&l, strconv.Itoa(n)}
		if !other.TakeSlot() {
			t.Fatal("no slot, though three of four are free")
		}
		other.ReleaseSlot()
	}
	if len(l.targets) != 1 || l.targets["waits"] != 1 {
		t.Errorf("%v; want the target that waits", l.targets)
	}
}
