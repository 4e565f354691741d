// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package long marks tests that take seconds. A plain "go test" skips them, so that it is quick; make check plays all.
package long

import (
	"os"
	"testing"
)

// Test skips a test, unless the environment has STAGGER_TESTS=all.
func Test(tb testing.TB) {
	tb.Helper()
	if os.Getenv("STAGGER_TESTS") != "all" {
		tb.Skip("takes seconds: STAGGER_TESTS=all plays it")
	}
}
