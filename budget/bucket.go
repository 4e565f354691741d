// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
	"github.com/stagger-go/stagger/internal/clock"
)

// Times that are the same for every bucket. docs/overload.md says why.
const (
	// RefillTime is how long an empty bucket takes to fill without any call.
	RefillTime = 5 * time.Minute
	// Window is how long a success adds to what the bucket can hold.
	Window = 5 * time.Second
	// AllFail is how many attempts must fail in a row before retries wait for an answer.
	AllFail = 5
	// Probe is how long no attempt has failed before a waiting call asks the server itself.
	Probe = 200 * time.Millisecond
)

// BucketConfig is a retry budget: a bucket, full at first. Each successful call adds PerSuccess, and time alone fills the bucket in
// [RefillTime]. A retry costs 1, and so does an attempt after a slow one that later ones have overtaken. Any other attempt after a slow one
// costs SlowCost. A successful retry or hedge refunds Refund times its cost. So it pays for itself and for the next ones, and if none
// succeeds, the bucket runs out.
//
// The bucket holds Size, or, for busy clients, what the successes of the last [Window] add, if that is more. Refunds fill it further, up to
// RefundSize, so that a client whose retries succeed can go on after a few that don't.
//
// After [AllFail] failed attempts in a row, retries aren't sent: [Budget.Allow] says [Later] until the server answers an attempt. If no attempt
// has failed for [Probe], one waiting call may ask the server. After the answer, one waiting call may return. Each that is answered lets three
// more return, if it takes at most the average time of those that were answered since, and else none. So where queues grow, fewer follow. If
// none is on its way, or none has returned for [Probe], one more may.
//
// All numbers have at most four decimals, which the bucket keeps exactly.
type BucketConfig struct {
	// Size is how many retries the bucket holds. 0 to 1,000,000. With 0 it is empty at first and time adds nothing: it holds only what the
	// successes of the last [Window] add, and refunds up to RefundSize.
	Size float64
	// PerSuccess is how many retries each call adds that ends with OK, such as 0.1. 0 to 10.
	PerSuccess float64
	// SlowCost is the cost of [CauseSlow]. 1 to 1000.
	SlowCost float64
	// Refund is what a successful retry or hedge refunds, in multiples of its cost. 0 to 10.
	Refund float64
	// RefundSize is how many retries the bucket can hold after refunds, if that is more than it holds otherwise. 0 to 1,000,000.
	RefundSize float64
}

// Default returns the config of the default budget, which policies without a budget have. docs/overload.md describes it, and
// docs/evidence/search.md shows the effects of other numbers.
func Default() BucketConfig {
	return BucketConfig{Size: 4, PerSuccess: 0.1, SlowCost: 4, Refund: 2, RefundSize: 24}
}

func (c BucketConfig) fields() []bounds.Field {
	return []bounds.Field{
		{Name: "Size", Value: c.Size, Low: 0, High: 1e6, Decimals: 4},
		{Name: "PerSuccess", Value: c.PerSuccess, Low: 0, High: 10, Decimals: 4},
		{Name: "SlowCost", Value: c.SlowCost, Low: 1, High: 1000, Decimals: 4},
		{Name: "Refund", Value: c.Refund, Low: 0, High: 10, Decimals: 4},
		{Name: "RefundSize", Value: c.RefundSize, Low: 0, High: 1e6, Decimals: 4},
	}
}

// Kind implements [Config].
func (BucketConfig) Kind() string { return "bucket" }

func (c BucketConfig) budget() Budget {
	b := &bucketBudget{successes: newCounter(), config: c, tokens: micro(c.Size)}
	b.slotEnd.Store(int64(b.recent.end()))
	b.lastFailed.Store(math.MinInt64 / 2)
	return b
}

// bucketBudget is the budget of a [BucketConfig], in millionths of a retry.
//
//	                 AllFail failures in a row
//	retries are sent ─────────────────────────► all fail: retries wait; after a Probe of silence, one asks the server
//	      ▲                                         │    ▲
//	      │ after Window                     answer │    │ AllFail failures in a row
//	      │                                         ▼    │
//	      └──────────────────────────────────── recovering: new retries are sent, and calls that waited return, 1 at first, then more
//
// A call without extra attempts allocates nothing and rarely writes to a cache line that another core uses. Ten successes per window
// take the lock.
type bucketBudget struct {
	successes counter      // since the start
	failed    atomic.Int64 // attempts in a row
	slotEnd   atomic.Int64 // the end of the newest slot of recent; written under mu

	_ [128]byte // failing calls write below, all calls read above

	lastFailed atomic.Int64 // when an attempt failed, or one was sent to ask the server, within failTick

	mu         sync.Mutex // guards all below
	config     BucketConfig
	recent     recent // successes of the last window
	tokens     int64
	filled     time.Duration // until when time has filled the bucket, to the millionth of a retry
	earned     int64         // successes that have added their part
	recovering *recovering   // the newest, or nil
}

// recovering is the return of calls that have waited, after an outage. The bucket's mu guards it.
type recovering struct {
	since    time.Duration // the first answer
	places   int64         // how many calls may return
	running  int64         // attempts of calls that have returned
	last     time.Duration // when one has returned
	answered int64         // of the attempts that have ended
	took     time.Duration // those answers, together
}

// failTick is how exactly the bucket knows when an attempt has last failed: most failures of a busy client then write nothing.
const failTick = 10 * time.Millisecond

// Observe implements [Budget]. A success's part is added when it is needed.
func (b *bucketBudget) Observe(now time.Time, e Event) {
	at := clock.At(now)
	switch e {
	case EventUnconnected:
		b.failed.Add(1)
	case EventAttemptFailed:
		b.failed.Add(1)
		if int64(at)-b.lastFailed.Load() >= int64(failTick) {
			b.lastFailed.Store(int64(at))
		}
	case EventAnswered:
		b.endOutage(at)
	case EventCallSucceeded:
		b.endOutage(at)
		if int64(at) >= b.slotEnd.Load() {
			b.mu.Lock()
			b.advance(at)
			b.mu.Unlock()
		}
		b.successes.addToStripe(at, 1)
	default:
	}
}

// endOutage ends the row of failures. If all have failed, the first call may return, and the bucket holds a retry for it.
func (b *bucketBudget) endOutage(at time.Duration) {
	if b.failed.Load() == 0 || b.failed.Swap(0) < AllFail {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(at)
	b.tokens = max(b.tokens, micro(1))
	b.recovering = &recovering{since: at}
}

// Allow implements [Budget].
func (b *bucketBudget) Allow(now time.Time, c Cause) (a Answer, ended func(time.Time, End)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := clock.At(now)
	b.advance(at)
	cost := b.cost(c)
	affordable := cost <= b.tokens
	waited := c == CauseWaited || c == CauseReconnected
	allFail := b.failed.Load() >= AllFail && (waited || c == CauseFailure)
	var r *recovering
	later := false
	switch {
	case allFail:
		later = !waited || !affordable || !b.asks(at)
	case waited:
		r = b.recoveringAt(at)
		later = !affordable || r != nil && !r.hasPlace(at) // calls that have returned may refund it
	}
	switch {
	case later:
		return Later, nil
	case !affordable:
		return No, nil
	}
	b.tokens -= cost
	if r != nil {
		r.places = max(r.places-1, 0)
		r.running++
		r.last = at
	}
	return Yes, func(now time.Time, how End) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.advance(clock.At(now))
		b.refund(cost, how)
		if r != nil {
			r.ended(clock.At(now)-at, how)
		}
	}
}

// cost returns the cost of an extra attempt.
func (b *bucketBudget) cost(c Cause) int64 {
	switch c {
	case CauseFailure, CauseOvertaken, CauseWaited:
		return micro(1)
	case CauseReconnected:
		return 0
	default:
		return micro(b.config.SlowCost)
	}
}

// asks reports whether a waiting call may ask the server, while all attempts fail: for a while, no attempt has. Clients whose calls all
// wait would not notice that the server is back. The next one may ask a while later. b.mu must be held.
func (b *bucketBudget) asks(at time.Duration) bool {
	if at-time.Duration(b.lastFailed.Load()) < Probe {
		return false
	}
	b.lastFailed.Store(int64(at))
	return true
}

// recoveringAt returns the return of waiting calls, if an outage has just ended, or nil. b.mu must be held.
func (b *bucketBudget) recoveringAt(at time.Duration) *recovering {
	if b.recovering == nil || at-b.recovering.since >= Window {
		return nil
	}
	return b.recovering
}

// hasPlace reports whether a call that has waited may return. One may always be on its way, and servers that hang hold up none for long.
func (r *recovering) hasPlace(at time.Duration) bool {
	return r.places > 0 || r.running == 0 || at-r.last >= Probe
}

// ended counts the end of a return. One that was never sent gives its place back. More follow an answer that took no longer than the others:
// in a queue that grows, each takes longer than the ones before.
func (r *recovering) ended(took time.Duration, how End) {
	r.running--
	switch how {
	case EndUnsent:
		r.places++
	case EndHelped:
		r.answered++
		r.took += took
		if took <= r.took/time.Duration(r.answered) {
			r.places += 3
		}
	default:
	}
}

// refund gives back what an extra attempt of this cost has earned. b.mu must be held.
func (b *bucketBudget) refund(cost int64, how End) {
	switch how {
	case EndUnsent:
		b.add(cost, b.most())
	case EndHelped:
		b.add(cost*micro(b.config.Refund)/micro(1), b.most())
	default:
	}
}

// advance adds what successes and time have earned. b.mu must be held.
func (b *bucketBudget) advance(now time.Duration) {
	n := b.successes.sum()
	if !b.recent.started {
		b.filled = now
	}
	b.recent.advance(now, n)
	b.fill(now)
	b.add((n-b.earned)*micro(b.config.PerSuccess), b.capacity())
	b.earned = n
	b.tokens = min(b.tokens, b.most())                         // a busy client has become a quiet one
	if end := int64(b.recent.end()); end != b.slotEnd.Load() { // all calls read it, and a store takes it from their caches
		b.slotEnd.Store(end)
	}
}

// fill adds what time has earned. b.mu must be held.
func (b *bucketBudget) fill(now time.Duration) {
	size := micro(b.config.Size)
	passed := min(since(now, b.filled), RefillTime)
	switch n := int64(float64(size) * float64(passed) / float64(RefillTime)); {
	case passed <= 0:
	case b.tokens+n >= size:
		b.tokens = max(b.tokens, size)
		b.filled = now
	default: // the time of less than a millionth counts next time, or a bucket that is asked often would stay empty
		b.tokens += n
		b.filled += time.Duration(math.Ceil(float64(n) * float64(RefillTime) / float64(size)))
	}
}

// add adds tokens, but not above full. b.mu must be held.
func (b *bucketBudget) add(tokens, full int64) {
	if b.tokens < full {
		b.tokens = min(b.tokens+tokens, full)
	}
}

// capacity returns how far successes and time fill the bucket, and most how far refunds do. b.mu must be held.
func (b *bucketBudget) capacity() int64 {
	return max(micro(b.config.Size), b.recent.sum()*micro(b.config.PerSuccess))
}

func (b *bucketBudget) most() int64 { return max(b.capacity(), micro(b.config.RefundSize)) }

// State implements [Stater].
func (b *bucketBudget) State(now time.Time) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(clock.At(now))
	return State{Balance: float64(b.tokens) / 1e6, Capacity: float64(max(b.capacity(), b.tokens)) / 1e6}
}

// Reload changes the config. The bucket stays equally full, and what refunds have added beyond that stays. It refuses a config of another
// kind.
func (b *bucketBudget) Reload(now time.Time, c Config) error {
	config, ok := c.(BucketConfig)
	if !ok {
		return errors.New("budget: must stay a bucket, and not become another kind")
	}
	if err := bounds.Check(config.fields()); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if config == b.config {
		return nil
	}
	b.advance(clock.At(now))
	filled := min(b.tokens, b.capacity())
	beyond := b.tokens - filled
	full := float64(filled) / float64(max(b.capacity(), 1)) // of size 0, it may hold nothing
	b.config = config
	b.tokens = min(int64(full*float64(b.capacity()))+beyond, b.most())
	return nil
}

// TimeToRetry returns how long time alone takes until the bucket has a retry. It is 0 if the bucket has one, or if time never adds one.
func (b *bucketBudget) TimeToRetry(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := clock.At(now)
	b.advance(at)
	size, missing := micro(b.config.Size), micro(1)-b.tokens
	if missing <= 0 || size < micro(1) {
		return 0
	}
	whole := time.Duration(math.Ceil(float64(missing) * float64(RefillTime) / float64(size)))
	return max(whole-since(at, b.filled), 0)
}
