// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "runtime"

// caught is a panic or Goexit of an inner interceptor in one of our goroutines. We repeat it in the
// application's goroutine, where it would have happened without us.
type caught struct {
	happened bool
	value    any // nil for Goexit
}

// note keeps the first panic.
func (c *caught) note(value any) {
	if !c.happened {
		c.happened, c.value = true, value
	}
}

// rethrow repeats the panic or Goexit, if there was one.
func (c *caught) rethrow() {
	switch {
	case !c.happened:
	case c.value == nil:
		runtime.Goexit()
	default:
		panic(c.value)
	}
}
