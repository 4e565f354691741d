// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisfleet

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// leaseTime is how long redisbudget may spend what it has leased.
const leaseTime = 10 * time.Second

// entry is a lease or an expense of a client.
type entry struct {
	client int
	at     time.Duration // when it was spent or, for a lease, requested
	known  time.Duration // when the answer came
	tokens float64
	kind   string
}

// The kinds of entries.
const (
	asked  = "asked" // without a grant
	leased = "leased"
	spent  = "spent" // of a lease
	shared = "share" // spent of a share, while the pool was away
)

// overdrawn returns how much clients have spent without a valid lease, and the maximum that all of them together had leased
// and not spent. The entries of each client are in order.
func overdrawn(list []entry) (tokens, outstanding float64) {
	open := map[int][]*entry{} // leases with their rest
	var changes []entry        // of the outstanding amount
	for _, e := range list {
		switch e.kind {
		case leased:
			open[e.client] = append(open[e.client], &e)
			changes = append(changes, entry{at: e.known, tokens: e.tokens})
		case spent:
			left := e.tokens
			for _, l := range open[e.client] {
				if e.at < l.at+leaseTime {
					used := min(left, l.tokens)
					l.tokens -= used
					left -= used
					changes = append(changes, entry{at: e.at, tokens: -used})
				}
			}
			tokens += left
		}
	}
	for _, leases := range open {
		for _, l := range leases {
			changes = append(changes, entry{at: l.at + leaseTime, tokens: -l.tokens})
		}
	}
	slices.SortFunc(changes, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	sum := 0.0
	for _, c := range changes {
		sum += c.tokens
		outstanding = max(outstanding, sum)
	}
	return tokens, outstanding
}

// excess returns the largest amount by which any window of time exceeds a rate.
func excess(list []entry, perSecond float64, at func(entry) time.Duration, kinds ...string) (most float64) {
	list = slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return !slices.Contains(kinds, e.kind) })
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(at(a), at(b)) })
	sum, least := 0.0, 0.0
	for i, e := range list {
		earned := perSecond * at(e).Seconds()
		if i == 0 || sum-earned < least {
			least = sum - earned
		}
		sum += e.tokens
		most = max(most, sum-earned-least)
	}
	return most
}

func spentAt(e entry) time.Duration { return e.at }
func knownAt(e entry) time.Duration { return e.known }

func TestLedger(t *testing.T) {
	const s = time.Second
	honest := []entry{
		{client: 1, at: 0, tokens: 2, kind: leased},
		{client: 2, at: s, tokens: 1, kind: leased},
		{client: 1, at: s, tokens: 1, kind: spent},
		{client: 2, at: 2 * s, tokens: 1, kind: spent},
		{client: 1, at: 9 * s, tokens: 1, kind: spent},
		{client: 1, at: 9 * s, tokens: 7, kind: shared},
	}
	for name, tt := range map[string]struct {
		more  []entry
		over  float64
		above float64 // of one a second
	}{
		"honest":                    {nil, 0, 8},
		"spent twice":               {[]entry{{client: 2, at: 3 * s, tokens: 1, kind: spent}}, 1, 8},
		"another's":                 {[]entry{{client: 3, at: 3 * s, tokens: 2, kind: spent}}, 2, 8},
		"spent after the lease":     {[]entry{{client: 4, at: 0, tokens: 1, kind: leased}, {client: 4, at: 10 * s, tokens: 1, kind: spent}}, 1, 8},
		"more than there is a time": {[]entry{{client: 4, at: 0, tokens: 30, kind: leased}, {client: 4, at: 9 * s, tokens: 30, kind: spent}}, 0, 38},
	} {
		list := slices.Concat(honest, tt.more)
		over, outstanding := overdrawn(list)
		if above := excess(list, 1, spentAt, spent, shared); over != tt.over || above != tt.above || outstanding < 2 || outstanding > 33 {
			t.Errorf("%s: %v overdrawn, %v above the rate, %v outstanding; want %v, %v", name, over, above, outstanding, tt.over, tt.above)
		}
	}
}
