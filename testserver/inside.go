// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"

	"github.com/stagger-go/stagger/internal/steps"
)

func init() {
	steps.Before = func(step any, do func(context.Context) error) any {
		s, _ := step.(Step)
		s.before = do
		return s
	}
	steps.Cut = func() any { return Step{end: endCut} }
	steps.Invalid = func(step any, err error) any {
		s, _ := step.(Step)
		return s.invalid(err)
	}
	steps.Raw = func(step any, messages [][]byte) any {
		s, _ := step.(Step)
		return s.raw(messages...)
	}
	steps.Replace = func(server, scripts any) error {
		s, _ := server.(*Server)
		next, _ := scripts.(map[string][]Step)
		return s.replace(next)
	}
	steps.Observe = func(f func(attempt any)) any {
		return Option{func(c *settings) error {
			c.observe = append(c.observe, func(a Attempt) { f(a) })
			return nil
		}}
	}
	steps.HalfClosed = func(attempt any) bool {
		a, _ := attempt.(Attempt)
		return a.halfClosed
	}
	steps.Failure = func(step any) error {
		s, _ := step.(Step)
		return s.err
	}
}
