// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"unsafe"

	"github.com/stagger-go/stagger/budget"
)

// With five words every withdrawal took 10 ns more, refused ones too.
func TestAPermitHasFourWords(t *testing.T) {
	t.Parallel()
	if got, most := unsafe.Sizeof(budget.Permit{}), 4*max(unsafe.Sizeof(uintptr(0)), 8); got > most {
		t.Errorf("%d bytes; want at most %d", got, most)
	}
}
