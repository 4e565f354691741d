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
	shared = "share" // spent of a share, while the pool was away; as a client writes it, of a lease or a share
)

// split returns the entries with those as spent that a lease has paid while the pool was away: it pays before the share does. The
// entries of each client are in order.
func split(list []entry) []entry {
	list = slices.Clone(list)
	open := map[int][]*entry{} // leases with their rest
	for i, e := range list {
		switch e.kind {
		case leased:
			open[e.client] = append(open[e.client], &e)
		case spent, shared:
			for _, l := range open[e.client] {
				if e.at < l.at+leaseTime && l.tokens >= e.tokens {
					l.tokens -= e.tokens
					list[i].kind = spent
					break
				}
			}
		}
	}
	return list
}

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

// The checks see a client that spends more than it has leased, grants above the rate, and which expenses a share has paid.
func TestLedger(t *testing.T) {
	t.Parallel()
	const s = time.Second
	lease := func(client int, at time.Duration, tokens float64) entry {
		return entry{client: client, at: at, known: at + s/10, tokens: tokens, kind: leased}
	}
	expense := func(client int, at time.Duration, kind string) entry {
		return entry{client: client, at: at, tokens: 1, kind: kind}
	}
	for name, row := range map[string]struct {
		list                    []entry
		over, outstanding, used float64
		shares                  int
	}{
		"within the lease":        {[]entry{lease(1, 0, 2), expense(1, s, spent), expense(1, 9*s, spent)}, 0, 2, 1, 0},
		"more than was leased":    {[]entry{lease(1, 0, 1), expense(1, s, spent), expense(1, s, spent)}, 1, 1, 2, 0},
		"another one's lease":     {[]entry{lease(1, 0, 1), expense(2, s, spent)}, 1, 1, 1, 0},
		"after the lease":         {[]entry{lease(1, 0, 1), expense(1, 10*s, spent)}, 1, 1, 1, 0},
		"the lease, then a share": {[]entry{lease(1, 0, 1), expense(1, s, shared), expense(1, s, shared), expense(1, 2*s, shared)}, 0, 1, 2, 2},
	} {
		list := split(row.list)
		over, outstanding := overdrawn(list)
		shares := 0
		for _, e := range list {
			if e.kind == shared {
				shares++
			}
		}
		if used := excess(list, 1, spentAt, spent, shared); over != row.over || outstanding != row.outstanding ||
			used != row.used || shares != row.shares {
			t.Errorf("%s: %v overdrawn, %v outstanding, %v above the rate, %d of shares; want %+v", name, over, outstanding,
				used, shares, row)
		}
	}
}
