// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Constants of the protocol.
const (
	// leaseTime is how long tokens may be spent. It starts before the request is sent. So the fleet never spends more in
	// that time than the pool has granted in it.
	leaseTime = 10 * time.Second
	// gap is the least time between two requests that no refused call has caused, and after a pool was found empty.
	gap = time.Second
	// hurry is the least time between two requests that refused calls have caused.
	hurry = 100 * time.Millisecond
	// beat is the longest time without a report. The pool counts clients by their reports. A large
	// fleet reports less often: all clients together make at most beats reports a second.
	beat  = 30 * time.Second
	beats = 500
	// longestSpread is the longest time in which all clients ask once, and so the number of clients at which they begin to make
	// more than beats requests a second: 150,000. A wrong number, such as a billion, must not keep a client from asking.
	longestSpread = 5 * time.Minute
	// token is an extra attempt, in millionths.
	token = 1_000_000
	// held is the capacity that a pool of any rate has.
	held = 10 * token
)

// lease is the part of a pool that a process may spend.
//
//	       a call was refused, tokens run out, a report is due
//	idle ────────────────────────────────────────────► asking
//	 ▲ ▲                                               │    │
//	 │ └───────────────── answered ────────────────────┘    │ failed
//	 │                                                      ▼
//	 └── answered ◄── asking, once each gap ◄──────────── away: the lease is spent, then this process's share
//
// Its methods are safe for concurrent use.
type lease struct {
	rate  int64         // of the pool: millionths of a token per second
	woken chan struct{} // next may return an earlier time

	mu       sync.Mutex // guards all below
	parts    []part     // the oldest first
	number   uint64     // of the last part
	used     float64    // tokens that recent calls want per second
	usedAt   time.Time
	cost     int64 // the last one that a call wanted
	refused  int64 // tokens that calls wanted and did not get, since the last request
	least    int64 // the smallest of them
	asking   bool
	askedAt  time.Time // the last request, or the beginning
	got      int64     // granted by the last response
	reported time.Time // the last request that was answered; zero: none
	empty    time.Time // until then, the pool counts as empty for requests of lacks or more
	lacks    int64     // the amount that the pool did not have
	clients  float64   // the pool's last count; 0: unknown
	away     bool      // the last request has failed
	share    int64     // this process's unspent share, while the pool can't be reached
	shareAt  time.Time
	ended    bool // for good
}

// part is the grant of one response.
type part struct {
	number        uint64
	granted, left int64
	end           time.Time
}

// ofShare is the number of payments from the process's share while the pool was away.
const ofShare = math.MaxUint64

// newLease returns an empty lease.
func newLease(perSecond float64, now time.Time) *lease {
	return &lease{rate: int64(math.Round(perSecond * token)), woken: make(chan struct{}, 1), askedAt: now.Add(-leaseTime), usedAt: now}
}

// take takes tokens. It returns the number of the part that has paid. If none has enough, it asks for the next call's.
func (l *lease) take(now time.Time, tokens int64) (paid uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if tokens > max(l.rate, held) || l.ended { // the pool never has as many
		return 0, false
	}
	l.use(now, tokens)
	paid = l.spend(now, tokens)
	if paid == 0 {
		if l.refused == 0 || tokens < l.least {
			l.least = tokens
		}
		l.refused = min(l.refused+tokens, whole(float64(l.rate))+held)
	}
	if !l.asking && (paid == 0 || l.low()) {
		select {
		case l.woken <- struct{}{}:
		default: // it will look anyway
		}
	}
	return paid, paid != 0
}

// spend takes tokens from the oldest part that has enough, or from the share. It returns its number, or 0 if none has enough.
// l.mu must be held.
func (l *lease) spend(now time.Time, tokens int64) uint64 {
	for i := range l.parts {
		if p := &l.parts[i]; p.left >= tokens {
			p.left -= tokens
			return p.number
		}
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

// earnShare adds the growth of this process's share of the pool. The share holds at most one second of it, or one token.
// l.mu must be held.
func (l *lease) earnShare(now time.Time) {
	if l.clients < 1 {
		return // the number of clients is unknown
	}
	rate := float64(l.rate) / l.clients
	l.share = int64(min(float64(l.share)+rate*now.Sub(l.shareAt).Seconds(), max(rate, token)))
	l.shareAt = now
}

// giveBack returns tokens that weren't needed, or that paid for an attempt that helped. They count until their part ends.
func (l *lease) giveBack(now time.Time, number uint64, tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if number == ofShare && l.away && l.clients >= 1 { // else there is no share
		l.share += tokens
		return
	}
	for i := range l.parts {
		if p := &l.parts[i]; p.number == number {
			p.left = min(p.left+max(tokens, 0), p.granted)
		}
	}
}

// balance returns the millionths that may be spent now.
func (l *lease) balance(now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if l.away {
		l.earnShare(now)
		return l.spendable() + l.share
	}
	return l.spendable()
}

// spendable returns the tokens of all parts. l.mu must be held.
func (l *lease) spendable() (tokens int64) {
	for _, p := range l.parts {
		tokens += p.left
	}
	return tokens
}

// expire drops the parts that have ended. l.mu must be held.
func (l *lease) expire(now time.Time) {
	l.parts = slices.DeleteFunc(l.parts, func(p part) bool { return !now.Before(p.end) })
}

// use counts the tokens that a call wants. A count decays to a third within a second. l.mu must be held.
func (l *lease) use(now time.Time, tokens int64) {
	l.used = l.used*math.Exp(-now.Sub(l.usedAt).Seconds()) + float64(tokens)
	l.usedAt = now
	if tokens > 0 {
		l.cost = tokens
	}
}

// request is a request to the pool.
type request struct {
	tokens  int64         // wanted, in millionths; 0: a report only
	least   int64         // a grant of less than this is useless
	covered time.Duration // since the last report that the pool received
}

// answer is the pool's response.
type answer struct {
	tokens  int64   // granted
	clients float64 // number of clients that share the pool; 0: unknown
}

// next returns the request to send now, if ok, and then expects answered or failed. Otherwise it returns how long to wait for the
// next look.
func (l *lease) next(now time.Time) (r request, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	l.use(now, 0)
	wait = l.due().Sub(now)
	if wait > 0 {
		return request{}, wait, false
	}
	r = l.request(now)
	l.asking, l.askedAt, l.refused = true, now, 0
	return r, 0, true
}

// due returns the time of the next request. l.mu must be held.
func (l *lease) due() time.Time {
	switch {
	case l.away: // spread over time, if there are many clients
		return l.askedAt.Add(max(gap, l.spread()))
	case l.refused > 0 && l.least < l.lacks:
		return l.askedAt.Add(hurry)
	case l.refused > 0:
		return latest(l.askedAt.Add(hurry), l.empty)
	case l.low():
		return latest(l.askedAt.Add(gap), l.empty)
	case l.reported.IsZero():
		return l.askedAt // the first report, so that the pool knows its clients before there is trouble
	default:
		return l.nextReport()
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// low reports whether to ask for tokens before calls lack them: calls use several per second, and the rest
// lasts for half a second. l.mu must be held.
func (l *lease) low() bool { return l.used >= 2*token && float64(l.spendable()) < l.used/2 }

// nextReport returns the time of the next report, a beat after the last one. Clients of a large fleet that started together would
// always report together. So each report comes up to half a beat early or late; the nanoseconds of the last one serve as
// randomness. l.mu must be held.
func (l *lease) nextReport() time.Time {
	if l.spread() <= beat {
		return l.reported.Add(beat)
	}
	chance := float64(l.reported.Nanosecond()%int(time.Millisecond)) / float64(time.Millisecond)
	return l.reported.Add(time.Duration((0.5 + chance) * float64(l.spread())))
}

// spread returns how long all clients take to ask, at beats requests per second, but no longer than longestSpread. l.mu must be held.
func (l *lease) spread() time.Duration {
	return time.Duration(min(l.clients/beats, longestSpread.Seconds()) * float64(time.Second))
}

// request returns the tokens to ask for: those that calls were refused, and the use of the next two seconds, if calls use
// several tokens per second. It is at most one second of the whole pool. It is not much more than this client's part of that either,
// unless the client has got its part and soon needed more. So the client asks once a second, not for each call. l.mu must be held.
func (l *lease) request(now time.Time) request {
	wanted, least := l.refused, l.cost
	if l.refused > 0 {
		least = l.least
	}
	second, since := whole(float64(l.rate)), now.Sub(l.askedAt)
	most := second
	if l.clients > 1 {
		most = whole(float64(l.rate) / l.clients * 4)
	}
	switch {
	case l.got > 0 && (since < gap || l.refused > 0 && since < 2*gap):
		most = min(max(most, 2*l.got), second)
	case since < 2*gap:
		most = max(most, l.got)
	}
	if l.used >= 2*token {
		wanted = max(wanted, whole(2*l.used-float64(l.spendable())))
	}
	if wanted == 0 { // a report only
		least = 0
	}
	r := request{least: least, tokens: max(min(wanted, most), least), covered: max(beat, l.spread())}
	if !l.reported.IsZero() { // a client that could not report for long does not count as many
		r.covered = min(now.Sub(l.reported), 2*r.covered)
	}
	return r
}

// whole rounds up to whole tokens: a part of one is useless.
func whole(tokens float64) int64 { return int64(math.Ceil(tokens/token)) * token }

// answered reports the pool's response to a request.
func (l *lease) answered(now time.Time, asked request, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking, l.away, l.reported, l.got = false, false, l.askedAt, a.tokens
	if a.clients > 0 { // else the last known number
		l.clients = max(a.clients, 1)
	}
	switch {
	case l.ended:
	case a.tokens > 0:
		l.number++
		l.parts = append(l.parts, part{number: l.number, granted: a.tokens, left: a.tokens, end: l.askedAt.Add(leaseTime)})
		l.expire(now) // a response may arrive after its part has ended
		l.empty = time.Time{}
	case asked.tokens > 0: // a smaller amount may be available
		l.empty, l.lacks = now.Add(gap), asked.least
	}
}

// failed reports that the pool has not answered.
func (l *lease) failed(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = false
	if !l.away {
		l.away, l.share, l.shareAt = true, 0, now
	}
}

// end ends the lease for good.
func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.parts, l.away, l.clients, l.share = true, nil, true, 0, 0
}
