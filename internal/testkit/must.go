// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package testkit is for tests: it ends those that cannot go on after an error, draws times, plays what chance may decide, shortens failures, makes
// files with one mistake, and runs external programs.
package testkit

// test is a test, a benchmark, or a run of a property.
type test interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test if err is not nil.
func NoError(t test, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Must takes the two results of a call: the function that it returns gives the first, or ends the test if err is not nil.
func Must[T any](v T, err error) func(t test) T {
	return func(t test) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}
