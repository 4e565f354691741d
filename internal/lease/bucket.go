// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"time"
)

// Constants of the pool's side.
const (
	leastBucket = 10 * token       // capacity of the smallest pool
	slotLength  = 30 * time.Second // the period in which clients are counted
)

// Bucket is the pool's side of the protocol, for simulations. It has the same state and arithmetic as the Redis script of
// budget/redisbudget; a test there compares the two. The zero Bucket is a key that does not exist yet. Keys never
// expire here. A Bucket is not safe for concurrent use.
type Bucket struct {
	exists          bool
	tokens          float64 // millionths
	at, slot        int64   // milliseconds: the last request, and the start of the current count of clients
	covered         int64   // milliseconds that reports have covered since that start
	clients, before float64 // counted in the last slot, and in the one before
}

// AnswerRequest returns the pool's answer to a request. The rate is in millionths of a token per second, now is the pool's clock.
func (b *Bucket) AnswerRequest(clock time.Duration, rate int64, r Request) Answer {
	now := clock.Milliseconds()
	if !b.exists {
		b.exists, b.at, b.slot = true, now, now
	}
	earned := float64(rate) * float64(max(now-b.at, 0)) / 1000
	b.tokens = min(b.tokens+earned, max(float64(rate), leastBucket))
	b.at = now
	var granted int64
	if r.Tokens > 0 && b.tokens >= float64(r.Least) {
		granted = int64(min(float64(r.Tokens), b.tokens))
		if granted < r.Tokens {
			granted = max(granted-granted%token, r.Least)
		}
	}
	b.tokens = math.RoundToEven(b.tokens - float64(granted))
	return Answer{Tokens: granted, Clients: b.countClients(now, r.Covered.Milliseconds())}
}

// countClients adds the time that a report covers, and returns the number of clients; 0 until the first slot has ended.
func (b *Bucket) countClients(now, covered int64) float64 {
	if now < b.slot {
		b.slot, b.covered = now, 0
	}
	b.covered += covered
	width, length := now-b.slot, slotLength.Milliseconds()
	seen, clients := float64(b.covered)/float64(max(width, length)), b.clients
	if width >= length {
		clients = seen
		b.clients, b.before, b.covered, b.slot = thousandths(seen), b.clients, 0, now
	}
	if clients == 0 {
		return 0
	}
	return thousandths(max(clients, b.before, seen))
}

// thousandths rounds to the precision of the script.
func thousandths(x float64) float64 { return math.RoundToEven(x*1000) / 1000 }
