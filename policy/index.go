// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "math/bits"

// index finds a policy by the name of its method, in every call. Names of one program differ in
// their ends and share long beginnings, so it hashes the last eight bytes only, which takes a third
// of the time of a map (BenchmarkLookup). Names whose ends are alike are told apart one by one.
type index struct {
	slots []slot // a power of two, at most half of them taken
	shift int
}

type slot struct {
	name   string
	policy *Policy
}

// newIndex makes an index of all the policies by their paths.
func newIndex(byPath map[string]*Policy) index {
	size := bits.Len(uint(2 * len(byPath)))
	x := index{slots: make([]slot, 1<<size), shift: 64 - size}
	for path, p := range byPath {
		i := x.start(path)
		for x.slots[i].policy != nil {
			i = (i + 1) & (len(x.slots) - 1)
		}
		x.slots[i] = slot{path, p}
	}
	return x
}

// find returns nil for a name that is not there.
func (x *index) find(path string) *Policy {
	for i := x.start(path); ; i = (i + 1) & (len(x.slots) - 1) {
		s := &x.slots[i]
		if s.policy == nil || s.name == path {
			return s.policy
		}
	}
}

// start is the first slot for a name: the golden ratio spreads what differs over the high bits.
func (x *index) start(path string) int {
	n := len(path)
	end := uint64(n)
	if n >= 8 {
		s := path[n-8:]
		end ^= uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	}
	return int(end * 0x9E3779B97F4A7C15 >> x.shift) //nolint:gosec // a few bits
}
