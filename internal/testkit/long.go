// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"os"
	"testing"
)

// Long skips a test that takes seconds, unless the environment has STAGGER_TESTS=all. So a plain "go test" is quick; make check plays all.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("STAGGER_TESTS") != "all" {
		t.Skip("takes seconds: STAGGER_TESTS=all plays it")
	}
}
