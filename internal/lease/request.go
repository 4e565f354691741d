// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"slices"
	"time"
)

// Next says what to ask the pool now, if ok, and then expects Answered or Failed; else when to look again.
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

// due is when the next request is. It requires mu.
func (l *Lease) due() time.Duration {
	switch {
	case l.away: // not all clients at once, if there are many
		return l.askedAt + max(Gap, l.spread())
	case len(l.waiting) > 0: // none of them for what the pool lacks
		return l.askedAt
	case l.low():
		return max(l.askedAt+Gap, l.empty)
	case !l.known:
		return l.askedAt // the first report, so that the pool knows its clients before there is trouble
	default:
		return l.nextReport()
	}
}

// nextReport is a beat after the last report. Clients of a large fleet that have begun together would report together for
// ever, so each of theirs comes half a beat early to half a beat late: the last one's nanoseconds are as good as chance. It
// requires mu.
func (l *Lease) nextReport() time.Duration {
	if l.spread() <= beat {
		return l.reported + beat
	}
	chance := math.Abs(float64(l.reported%time.Millisecond)) / float64(time.Millisecond)
	return l.reported + time.Duration((0.5+chance)*float64(l.spread()))
}

// beat is the time between two reports. It requires mu.
func (l *Lease) beat() time.Duration {
	return max(beat, l.spread())
}

// spread is how long it takes all clients to ask, if they ask beats times a second. It requires mu.
func (l *Lease) spread() time.Duration {
	return time.Duration(l.clients / beats * float64(time.Second))
}

// request is what the pool is asked for: what calls wait for, and what they will use in two seconds, if they use
// several tokens a second. It is never more than a second of the whole pool, nor, by much, than this client's part of
// that, unless it has got that and needed more soon: so that it asks once a second, and not for each call. It requires mu.
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
		wanted = max(wanted, whole(2*l.used-float64(l.left())))
	}
	if wanted == 0 { // a report only
		least = 0
	}
	r := Request{Least: least, Tokens: max(min(wanted, most), least), Covered: l.beat()}
	if l.known { // who could not report for long does not count for many
		r.Covered = min(now-l.reported, 2*l.beat())
	}
	return r
}

// whole is so many whole tokens at least: a part of one helps nobody.
func whole(tokens float64) int64 { return int64(math.Ceil(tokens/token)) * token }

// Answered reports what the pool has said.
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
	if a.Clients > 0 { // else the last that was known
		l.clients = max(a.Clients, 1)
	}
	switch {
	case a.Tokens > 0:
		l.counts.Leased += a.Tokens
		l.number++
		l.parts = append(l.parts, &part{number: l.number, granted: a.Tokens, left: a.Tokens, end: l.askedAt + Length})
		l.expire(now) // an answer may come when its part has ended
		l.payWaiting()
	case asked.Tokens > 0: // who wants less may find it
		l.empty, l.lacks = now+Gap, asked.Least
		l.waiting = slices.DeleteFunc(l.waiting, func(w ask) bool { return w.tokens >= l.lacks })
	}
}

// payWaiting pays for what calls wait for, the oldest first, as far as there are tokens. It requires mu.
func (l *Lease) payWaiting() {
	l.waiting = slices.DeleteFunc(l.waiting, func(w ask) bool {
		p := l.pay(w.tokens)
		if p != nil {
			l.granted[w.number] = grant{part: p}
		}
		return p != nil
	})
}

// Failed reports that the pool has not answered. Calls that wait for it get no other attempt.
func (l *Lease) Failed(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking, l.waiting = false, nil
	if !l.away {
		l.away, l.share, l.shareAt = true, 0, now
	}
}

// End ends the lease for good: nothing is left, and nothing is promised.
func (l *Lease) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.parts, l.waiting, l.granted, l.away, l.clients, l.share = true, nil, nil, nil, true, 0, 0
}

// Clients are how many share the pool, as it last said; 0: not known.
func (l *Lease) Clients() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clients
}

// Away reports whether the last request has failed.
func (l *Lease) Away() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away
}

// Counts are what has happened so far.
func (l *Lease) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}
