// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
)

// nameOf is how the enumerations of this package print themselves: names are those of their numbers, of
// which 0 prints as the default that it means.
func nameOf[T ~uint8](v T, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "INVALID"
}

// enum takes a value of the file for the one of the same number. A number that is none of the file's names can
// only come with a descriptor, and is refused by the checks.
func enum[T ~uint8, P ~int32](p P) T {
	if p < 0 || p > math.MaxUint8 {
		return math.MaxUint8
	}
	return T(p)
}
