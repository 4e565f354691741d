// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Jitter is how a backoff is spread by chance. The zero value means [JitterFull].
type Jitter uint8

// The kinds of jitter; b is the backoff after growth and cap, r a chance in [0, 1).
const (
	JitterNone         Jitter = iota + 1 // b: clients stay in step; for tests
	JitterFull                           // r·b: spreads load best (AWS Architecture Blog, 2015)
	JitterEqual                          // b/2 + r·b/2: never less than half
	JitterDecorrelated                   // Initial + r·(min(Max, 3·previous) − Initial)
	JitterProportional                   // b·(0.8 + 0.4·r): gRPC's own (gRFC A6)
)

// String spells the jitter as a policy file does.
func (j Jitter) String() string {
	return nameOf(j, "FULL", "NONE", "FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL")
}

// spread applies the jitter to b. DECORRELATED does not grow from b: see [Backoff.Delay].
func (j Jitter) spread(b, r float64) float64 {
	switch j {
	case JitterNone:
		return b
	case JitterEqual:
		return b/2 + r*b/2
	case JitterProportional:
		return b * (0.8 + 0.4*r)
	default:
		return r * b
	}
}
