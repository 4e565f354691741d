// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisfleet

import (
	"cmp"
	"slices"
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
