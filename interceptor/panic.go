// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "runtime"

// caught is a panic of an inner interceptor, or that it has called Goexit, in a goroutine of ours. It comes up in the
// application's goroutine, as it would have without us.
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

// rethrow panics, or calls Goexit, if that has happened.
func (c *caught) rethrow() {
	switch {
	case !c.happened:
	case c.value == nil:
		runtime.Goexit()
	default:
		panic(c.value)
	}
}
