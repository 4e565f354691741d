// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"os"
	"testing"
)

// Long skips a test that takes seconds, unless the environment has STAGGER_TESTS=all. So a plain "go test" is quick; make check plays all.
func Long(tb testing.TB) {
	tb.Helper()
	if os.Getenv("STAGGER_TESTS") != "all" {
		tb.Skip("takes seconds: STAGGER_TESTS=all plays it")
	}
}
