// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "runtime"

// caughtPanic is a panic or Goexit of an inner interceptor in one of our goroutines. We repeat it in the
// application's goroutine, where it would have happened without us.
type caughtPanic struct {
	happened bool
	value    any // nil for Goexit
}

// note keeps the first panic.
func (c *caughtPanic) note(value any) {
	if !c.happened {
		c.happened, c.value = true, value
	}
}

// rethrow repeats the panic or Goexit, if there was one.
func (c *caughtPanic) rethrow() {
	switch {
	case !c.happened:
	case c.value == nil:
		runtime.Goexit()
	default:
		panic(c.value)
	}
}
