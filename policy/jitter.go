// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Jitter is how a backoff is spread by chance. The zero value is [Full].
type Jitter uint8

// The kinds of jitter; b is the backoff after growth and cap, r a chance in [0, 1).
const (
	Full         Jitter = iota // r·b: spreads load best (AWS Architecture Blog, 2015)
	None                       // b: clients stay in step; for tests
	Equal                      // b/2 + r·b/2: never less than half
	Decorrelated               // Initial + r·(min(Max, 3·previous) − Initial)
	Proportional               // b·(0.8 + 0.4·r): gRPC's own (gRFC A6)
)

// String spells the jitter as a policy file does.
func (j Jitter) String() string {
	return nameOf(j, "FULL", "NONE", "EQUAL", "DECORRELATED", "PROPORTIONAL")
}

// spread applies the jitter to b. DECORRELATED does not grow from b: see [Backoff.Delay].
func (j Jitter) spread(b, r float64) float64 {
	switch j {
	case Full:
		return r * b
	case Equal:
		return b/2 + r*b/2
	case Proportional:
		return b * (0.8 + 0.4*r)
	default:
		return b
	}
}
