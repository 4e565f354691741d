// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
)

// Random carries out step with probability p in [0,1], and answers OK with an empty message
// otherwise. The outcome depends on the seed, the method and the attempt's place in its script
// alone, so it does not change between runs, and not with what other methods do. Give servers that
// stand side by side seeds of their own.
func Random(seed uint64, p float64, step Step) Step {
	s := Step{end: endPick, err: step.err}
	if !(p >= 0 && p <= 1) { // not the inverse: NaN must fail too
		return s.invalid(fmt.Errorf("Random with probability %v: want 0 to 1", p))
	}
	s.plays, s.mayDrop = step.plays, step.drops() // a Play receives for itself
	s.pick = func(c *call) Step {
		if chance(seed, c.attempt.Method, c.k) < p {
			return step
		}
		return OK()
	}
	return s
}

// chance is a number in [0,1): the k-th of the SplitMix64 sequence of seed and method.
func chance(seed uint64, method string, k int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(method))
	x := (seed ^ h.Sum64()) + uint64(k+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// Func carries out the step that f returns. It gets the attempt with what is known of it at its
// start, and must return when ctx is done: [Server.Close] waits for it. It is called from many
// goroutines at once. A step with impossible values is answered with INTERNAL and their err.
func Func(f func(ctx context.Context, a Attempt) Step) Step {
	s := Step{end: endPick, mayDrop: true}
	if f == nil {
		return s.invalid(errors.New("Func(nil): want a function"))
	}
	s.pick = func(c *call) Step {
		step := f(c.stream.Context(), c.attempt.clone())
		if step.err != nil {
			return errorStep(fmt.Errorf("testserver: %s: step returned to Func: %w", c.attempt.Method, step.err))
		}
		return step
	}
	return s
}
