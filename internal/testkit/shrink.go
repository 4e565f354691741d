// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import "slices"

// Shrink removes bytes, or sets them to 0, as long as they still fail.
func Shrink(data []byte, fails func([]byte) bool) []byte {
	for again := true; again; {
		again = false
		for size := len(data); size > 0; size /= 2 {
			for i := 0; i+size <= len(data); {
				if less := slices.Delete(slices.Clone(data), i, i+size); fails(less) {
					data, again = less, true
					continue
				}
				if zero := slices.Clone(data); slices.Max(data[i:i+size]) > 0 {
					clear(zero[i : i+size])
					if fails(zero) {
						data, again = zero, true
					}
				}
				i += size
			}
		}
	}
	return data
}
