// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
)

// Random returns a step that is step with probability p in [0,1], and otherwise OK with an empty
// message. The choice depends only on the seed, the method and the attempt's number in its script.
// So it is the same in each run, and independent of other methods. Use a different seed for each of
// several parallel servers.
func Random(seed uint64, p float64, step Step) Step {
	s := Step{end: endPick, err: step.err}
	if !(p >= 0 && p <= 1) { // not the inverse: NaN must fail too
		return s.Invalid(fmt.Errorf("Random with probability %v: want 0 to 1", p))
	}
	s.streams, s.mayDrop = step.streams, step.drops() // a Stream receives by itself
	s.pick = func(c *call) Step {
		if chance(seed, c.attempt.Method, c.k) < p {
			return step
		}
		return OK()
	}
	return s
}

// chance returns a number in [0,1): the k-th of the SplitMix64 sequence of seed and method.
func chance(seed uint64, method string, k int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(method))
	x := (seed ^ h.Sum64()) + uint64(k+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// Func returns a step that runs the step returned by f. f gets the attempt as it is at its start, and must return when ctx is done:
// [Server.Close] waits for it. It must be safe for concurrent use. If the returned step has invalid values, the attempt ends with INTERNAL
// and the error.
func Func(f func(ctx context.Context, a Attempt) Step) Step {
	s := Step{end: endPick, mayDrop: true}
	if f == nil {
		return s.Invalid(errors.New("Func(nil): want a function"))
	}
	s.pick = func(c *call) Step {
		var a Attempt
		c.record.update(func() { a = c.attempt.clone() }) // the record may be dropping it
		step := f(c.stream.Context(), a)
		if step.err != nil {
			return errorStep(fmt.Errorf("testserver: %s: step returned to Func: %w", c.attempt.Method, step.err))
		}
		return step
	}
	return s
}
