// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lease is the client's side of a pool that a fleet shares. It decides how many tokens a process asks for, and how many
// it may spend while the pool is unavailable.
//
// A [Lease] does no I/O and starts no goroutine. Its driver, [Pools] or the simulator of lab/fleet, sends the requests of
// [Lease.Next] to the pool, and reports the answers.
package lease

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
)

// Constants of the protocol.
const (
	// Length is how long tokens may be spent. It starts before the request is sent. So the fleet never spends more in
	// a Length than the pool has granted in it.
	Length = 10 * time.Second
	// Gap is the least time between two requests that no call waits for, and after a pool was found empty.
	Gap = time.Second
	// beat is the longest time without a report. The pool counts clients by their reports. A large
	// fleet reports less often: all clients together make at most beats reports a second.
	beat  = 30 * time.Second
	beats = 500
	// longestWait bounds how long a call waits for an answer, when its backoff is shorter than answers take.
	longestWait = 100 * time.Millisecond
	// token is an extra attempt, in millionths.
	token = 1_000_000
	// held is the capacity that a pool of any rate has.
	held = 10 * token
	// Never is later than all other times.
	Never = time.Duration(math.MaxInt64)
)

// Lease is the part of a pool that a process may spend. It is a [balance.Lease].
//
//	       calls wait, tokens run out, a report is due
//	idle ────────────────────────────────────────────► asking
//	 ▲ ▲                                               │    │
//	 │ └───────────────── answered ────────────────────┘    │ failed
//	 │                                                      ▼
//	 └── answered ◄── asking, once each Gap ◄──────────── away: the lease is spent, then this client's share
//
// Its methods are safe for concurrent use.
type Lease struct {
	wake func() // reports that Next may return an earlier time; called without the lock

	mu       sync.Mutex       // guards all below
	rate     int64            // of the pool: millionths of a token per second
	parts    []*part          // the oldest first
	waiting  []ask            // the oldest first
	granted  map[uint64]grant // asks that a part has paid for, until the part ends and the call has learned of it
	number   uint64           // of the last part or ask
	used     float64          // tokens that recent calls want per second
	usedAt   time.Duration
	cost     int64 // the last one that a call wanted
	asking   bool
	askedAt  time.Duration // the last request, or the beginning
	took     time.Duration // how long the last answers took
	got      int64         // granted by the last answer
	reported time.Duration // the last request that was answered
	known    bool          // there was one
	empty    time.Duration // until then, the pool counts as empty for requests of lacks or more
	lacks    int64         // the amount that the pool did not have
	clients  float64       // the pool's last count; 0: unknown
	away     bool          // the last request has failed
	share    int64         // this client's unspent share, while the pool is away
	shareAt  time.Duration
	ended    bool // for good
	counts   Counts
}

// Counts are totals since the lease was made.
type Counts struct {
	Requests      uint64
	Asked, Leased int64  // millionths of a token
	Denied        uint64 // draws that were denied, at once or at the end of the wait
}

// part is the grant of one answer.
type part struct {
	number  uint64
	granted int64
	left    int64
	end     time.Duration
	ended   bool
}

// grant is a part that has paid for an ask. The payment is final, even if the call waits longer than the part lasts,
// for its backoff or a pushback.
type grant struct {
	part  *part
	heard bool // the call has learned of it
}

// ask is the request of a call that waits.
type ask struct {
	number uint64
	tokens int64
}

// ofShare is the number of permits that were drawn from the client's share while the pool was away.
const ofShare = math.MaxUint64

var _ balance.Lease = (*Lease)(nil)

// New returns an empty lease. It calls wake, from any goroutine, when Next may return an earlier time than
// before; wake must not block. The clock may count from any moment.
func New(perSecond float64, now time.Duration, wake func()) *Lease {
	l := &Lease{wake: wake, granted: map[uint64]grant{}, askedAt: now - Length, usedAt: now, empty: now - Gap}
	l.SetRate(perSecond)
	return l
}

// SetRate changes the rate of the pool, in tokens per second.
func (l *Lease) SetRate(perSecond float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = int64(math.Round(perSecond * 1e6))
}

// Take implements [balance.Lease].
func (l *Lease) Take(now time.Duration, tokens int64) (balance.Draw, bool) {
	d, ok, wake := l.drawTokens(now, tokens)
	if wake {
		l.wake()
	}
	return d, ok
}

func (l *Lease) drawTokens(now time.Duration, tokens int64) (d balance.Draw, ok, wake bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if tokens > max(l.rate, held) { // never granted: later asks would wait in vain
		l.counts.Denied++
		return balance.Draw{}, false, false
	}
	l.use(now, tokens)
	d.Tokens = tokens
	switch d.Number = l.spend(now, tokens); {
	case d.Number != 0:
		return d, true, !l.asking && l.low()
	case l.away, now < l.empty && tokens >= l.lacks:
		l.counts.Denied++
		return balance.Draw{}, false, false
	default:
		l.number++
		l.waiting = append(l.waiting, ask{l.number, tokens})
		return balance.Draw{Number: l.number, Tokens: tokens, Asked: true, Wait: l.wait()}, true, !l.asking
	}
}

// wait returns how long a call should wait for an answer: twice as long as the last ones took, so that nearly all come in
// time, and longer if a request is already in flight. l.mu must be held.
func (l *Lease) wait() time.Duration {
	wait := 2 * l.took
	if l.asking {
		wait += l.took
	}
	return min(wait, longestWait)
}

// spend takes tokens from a part, or from the share, and returns its number, or 0 if none has enough. l.mu must be held.
func (l *Lease) spend(now time.Duration, tokens int64) uint64 {
	if p := l.pay(tokens); p != nil {
		return p.number
	}
	if !l.away {
		return 0
	}
	l.earnShare(now)
	if l.share < tokens {
		return 0
	}
	l.share -= tokens
	return ofShare
}

// pay takes tokens from the oldest part that has enough, and returns it, or nil. l.mu must be held.
func (l *Lease) pay(tokens int64) *part {
	for _, p := range l.parts {
		if p.left >= tokens {
			p.left -= tokens
			return p
		}
	}
	return nil
}

// earnShare adds the growth of this client's share of the pool. The share holds at most one second of it, or one token.
// l.mu must be held.
func (l *Lease) earnShare(now time.Duration) {
	if l.clients < 1 {
		return // the number of clients is unknown
	}
	rate := float64(l.rate) / l.clients
	most := max(rate, 1e6)
	l.share = int64(min(float64(l.share)+rate*(now-l.shareAt).Seconds(), most))
	l.shareAt = now
}

// Confirm implements [balance.Lease].
func (l *Lease) Confirm(now time.Duration, d balance.Draw) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	l.forgetAsk(d.Number)
	g, ok := l.granted[d.Number]
	if !ok {
		l.counts.Denied++
		return false
	}
	g.heard = true
	l.granted[d.Number] = g
	l.dropGranted()
	return true
}

// forgetAsk stops waiting for an ask. l.mu must be held.
func (l *Lease) forgetAsk(number uint64) {
	l.waiting = slices.DeleteFunc(l.waiting, func(a ask) bool { return a.number == number })
}

// Return implements [balance.Lease].
func (l *Lease) Return(now time.Duration, d balance.Draw) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if d.Number == ofShare {
		if l.away && l.clients >= 1 { // else there is no share
			l.share += d.Tokens
		}
		return
	}
	i := slices.IndexFunc(l.parts, func(p *part) bool { return p.number == d.Number })
	p := l.granted[d.Number].part
	delete(l.granted, d.Number)
	switch {
	case i >= 0:
		p = l.parts[i]
	case p == nil:
		l.forgetAsk(d.Number)
		return
	}
	p.left = min(p.left+d.Tokens, p.granted)
}

// Balance implements [balance.Lease].
func (l *Lease) Balance(now time.Duration) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if l.away {
		l.earnShare(now)
		return l.spendable() + l.share
	}
	return l.spendable()
}

// spendable returns the tokens that may be spent. l.mu must be held.
func (l *Lease) spendable() (tokens int64) {
	for _, p := range l.parts {
		tokens += p.left
	}
	return tokens
}

// expire drops the parts that have ended. l.mu must be held.
func (l *Lease) expire(now time.Duration) {
	for len(l.parts) > 0 && now >= l.parts[0].end {
		l.parts[0].ended = true
		l.parts = l.parts[1:]
		l.dropGranted()
	}
}

// dropGranted drops asks that calls have learned of and whose parts have ended: nothing can be returned to them.
// l.mu must be held.
func (l *Lease) dropGranted() {
	maps.DeleteFunc(l.granted, func(_ uint64, g grant) bool { return g.heard && g.part.ended })
}

// use counts the tokens that a call wants. A count decays to a third within a second. l.mu must be held.
func (l *Lease) use(now time.Duration, tokens int64) {
	l.used = l.used*math.Exp(-(now-l.usedAt).Seconds()) + float64(tokens)
	l.usedAt = now
	if tokens > 0 {
		l.cost = tokens
	}
}
