// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"slices"
	"time"
)

// Request is a request to the pool.
type Request struct {
	Tokens  int64         // wanted, in millionths; 0: a report only
	Least   int64         // a grant of less than this is useless
	Covered time.Duration // since the last report that the pool received
}

// Answer is the pool's answer to a Request.
type Answer struct {
	Tokens  int64   // granted
	Clients float64 // number of clients that share the pool; 0: unknown
}

// Next returns the request to send now, if ok, and then expects Answered or Failed. Otherwise it returns the time of the next look.
func (l *Lease) Next(now time.Duration) (r Request, at time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	l.use(now, 0)
	if l.asking {
		return Request{}, Never, false
	}
	if at = l.due(); at > now {
		return Request{}, at, false
	}
	r = l.request(now)
	l.asking, l.askedAt = true, now
	l.counts.Requests++
	l.counts.Asked += r.Tokens
	return r, Never, true
}

// due returns the time of the next request. l.mu must be held.
func (l *Lease) due() time.Duration {
	switch {
	case l.away: // spread over time, if there are many clients
		return l.askedAt + max(Gap, l.spread())
	case len(l.waiting) > 0: // none of them for an amount that the pool lacks
		return l.askedAt
	case l.low():
		return max(l.askedAt+Gap, l.empty)
	case !l.known:
		return l.askedAt // the first report, so that the pool knows its clients before there is trouble
	default:
		return l.nextReport()
	}
}

// low reports whether to ask for tokens before calls have to wait for them: calls use several per second, and the rest
// lasts for half a second. l.mu must be held.
func (l *Lease) low() bool { return l.used >= 2e6 && float64(l.spendable()) < l.used/2 }

// nextReport returns the time of the next report, a beat after the last one. Clients of a large fleet that started together would
// always report together. So each report comes up to half a beat early or late; the nanoseconds of the last one serve as
// randomness. l.mu must be held.
func (l *Lease) nextReport() time.Duration {
	if l.spread() <= beat {
		return l.reported + beat
	}
	chance := math.Abs(float64(l.reported%time.Millisecond)) / float64(time.Millisecond)
	return l.reported + time.Duration((0.5+chance)*float64(l.spread()))
}

// beat returns the time between two reports. l.mu must be held.
func (l *Lease) beat() time.Duration {
	return max(beat, l.spread())
}

// spread returns how long all clients take to ask, at beats requests per second. l.mu must be held.
func (l *Lease) spread() time.Duration {
	return time.Duration(l.clients / beats * float64(time.Second))
}

// request returns the tokens to ask for: those that calls wait for, and the use of the next two seconds, if calls use
// several tokens per second. It is at most one second of the whole pool. It is not much more than this client's part of that either,
// unless the client has got its part and soon needed more. So the client asks once a second, not for each call. l.mu must be held.
func (l *Lease) request(now time.Duration) Request {
	var wanted int64
	least := l.cost
	for i, a := range l.waiting {
		wanted += a.tokens
		if i == 0 || a.tokens < least {
			least = a.tokens
		}
	}
	second, since := whole(float64(l.rate)), now-l.askedAt
	most := second
	if l.clients > 1 {
		most = whole(float64(l.rate) / l.clients * 4)
	}
	switch {
	case since < Gap && l.got > 0:
		most = min(max(most, 2*l.got), second)
		wanted += l.cost
	case since < 2*Gap:
		most = max(most, l.got)
	}
	if l.used >= 2e6 {
		wanted = max(wanted, whole(2*l.used-float64(l.spendable())))
	}
	if wanted == 0 { // a report only
		least = 0
	}
	r := Request{Least: least, Tokens: max(min(wanted, most), least), Covered: l.beat()}
	if l.known { // a client that could not report for long does not count as many
		r.Covered = min(now-l.reported, 2*l.beat())
	}
	return r
}

// whole rounds up to whole tokens: a part of one is useless.
func whole(tokens float64) int64 { return int64(math.Ceil(tokens/token)) * token }

// Answered reports the pool's answer.
func (l *Lease) Answered(now time.Duration, asked Request, a Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.expire(now)
	if l.took = (3*l.took + now - l.askedAt) / 4; !l.known {
		l.took = now - l.askedAt
	}
	l.asking, l.away, l.known, l.reported, l.got = false, false, true, l.askedAt, a.Tokens
	if a.Clients > 0 { // else the last known number
		l.clients = max(a.Clients, 1)
	}
	switch {
	case a.Tokens > 0:
		l.counts.Leased += a.Tokens
		l.number++
		l.parts = append(l.parts, &part{number: l.number, granted: a.Tokens, left: a.Tokens, end: l.askedAt + Length})
		l.expire(now) // an answer may arrive after its part has ended
		l.payWaiting()
	case asked.Tokens > 0: // a smaller amount may be available
		l.empty, l.lacks = now+Gap, asked.Least
		l.waiting = slices.DeleteFunc(l.waiting, func(w ask) bool { return w.tokens >= l.lacks })
	}
}

// payWaiting pays for waiting calls, the oldest first, as far as there are tokens. l.mu must be held.
func (l *Lease) payWaiting() {
	l.waiting = slices.DeleteFunc(l.waiting, func(w ask) bool {
		p := l.pay(w.tokens)
		if p != nil {
			l.granted[w.number] = grant{part: p}
		}
		return p != nil
	})
}

// Failed reports that the pool has not answered. Calls that wait for it are denied.
func (l *Lease) Failed(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking, l.waiting = false, nil
	if !l.away {
		l.away, l.share, l.shareAt = true, 0, now
	}
}

// End ends the lease for good: it holds and promises nothing.
func (l *Lease) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.parts, l.waiting, l.granted, l.away, l.clients, l.share = true, nil, nil, nil, true, 0, 0
}

// Clients returns the number of clients that share the pool, by its last answer; 0: unknown.
func (l *Lease) Clients() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clients
}

// Counts returns the totals since the lease was made.
func (l *Lease) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}
