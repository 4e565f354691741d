// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package must ends tests that cannot go on after an error.
package must

// test is a test, a benchmark, or a run of a property.
type test interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if err is not nil.
func Do(t test, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Get takes the two results of a call: the function that it returns gives the first, or ends the test if err is not nil.
func Get[T any](v T, err error) func(t test) T {
	return func(t test) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}
