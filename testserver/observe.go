// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import "errors"

// Observe calls f with every attempt when it begins, and once more when it has ended: then its End is
// set. A client that has its answer has been seen by f. f is called in the attempt's own goroutine,
// from many at once, and holds the attempt up until it returns. It may be given more than once.
func Observe(f func(Attempt)) Option {
	return func(c *settings) error {
		if f == nil {
			return errors.New("testserver: Observe(nil): want a function")
		}
		c.observe = append(c.observe, f)
		return nil
	}
}

// show tells the observers of an attempt, as it is now.
func (s *Server) show(a *Attempt) {
	if len(s.observe) == 0 {
		return
	}
	var now Attempt
	s.record.update(func() { now = a.clone() })
	for _, f := range s.observe {
		f(now)
	}
}
