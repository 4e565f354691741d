// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// ThrottleConfig is what a [Throttle] is made from: retryThrottling of gRPC's service config.
type ThrottleConfig struct {
	// MaxTokens is what the bucket holds, and starts with. 1 to 1000 (gRFC A6).
	MaxTokens int
	// TokenRatio is what a call that succeeds adds. At least 0.001, and finite; decimals beyond the
	// third are dropped, as gRFC A6 says: 0.5466 is 0.546.
	TokenRatio float64
}

// Throttle is the token bucket of gRFC A6: an attempt that fails takes a token, a call that
// succeeds adds TokenRatio, and extra attempts are granted while the bucket is more than half full.
// To withdraw costs nothing, and so nothing is given back; the kind and the time do not matter.
//
// With a bucket that is full, a call that succeeds only reads. The zero value is not usable: see
// [NewThrottle].
type Throttle struct {
	bucket atomic.Pointer[bucket]
	tokens atomic.Int64 // milli-tokens, so that three decimals are exact: 0 to the bucket's most
	denied atomic.Uint64
	reload sync.Mutex // one at a time
}

// bucket is a ThrottleConfig in milli-tokens.
type bucket struct{ most, ratio int64 }

var _ Budget = (*Throttle)(nil)

// tokenInMilli is one token in milli-tokens, the unit in which a [Throttle] counts.
const tokenInMilli = 1000

// NewThrottle makes a full bucket. The error names every field that is out of bounds, its value and
// the bounds.
func NewThrottle(c ThrottleConfig) (*Throttle, error) {
	fresh, err := c.bucket()
	if err != nil {
		return nil, err
	}
	t := new(Throttle)
	t.bucket.Store(fresh)
	t.tokens.Store(fresh.most)
	return t, nil
}

func (c ThrottleConfig) bucket() (*bucket, error) {
	var tokens, ratio error
	if c.MaxTokens < 1 || c.MaxTokens > 1000 {
		tokens = fmt.Errorf("budget: MaxTokens %d: must be 1 to 1000", c.MaxTokens)
	}
	if !(c.TokenRatio >= 0.001) || math.IsInf(c.TokenRatio, 0) { // NaN too
		ratio = fmt.Errorf("budget: TokenRatio %v: must be at least 0.001, since decimals beyond the third are dropped, and finite",
			c.TokenRatio)
	}
	if err := errors.Join(tokens, ratio); err != nil {
		return nil, err
	}
	// No call adds more than the bucket holds, so the smaller of the two behaves the same.
	return &bucket{most: int64(c.MaxTokens) * tokenInMilli, ratio: milli(min(c.TokenRatio, float64(c.MaxTokens)))}, nil
}

// Reload changes the config. The bucket stays as full as it was, in parts of MaxTokens: a refill would
// let every client of a service in trouble retry again. A config that is out of bounds is refused, and
// changes nothing.
func (t *Throttle) Reload(_ time.Duration, c ThrottleConfig) error {
	fresh, err := c.bucket()
	if err != nil {
		return err
	}
	t.reload.Lock()
	defer t.reload.Unlock()
	old := t.bucket.Swap(fresh)
	rescale(&t.tokens, old.most, fresh.most)
	return nil
}

// Drain leaves half of the tokens, at which nothing is granted, or what there is if that is less.
func (t *Throttle) Drain(time.Duration) {
	for {
		old := t.tokens.Load()
		half := t.bucket.Load().most / 2
		if old <= half || t.tokens.CompareAndSwap(old, half) {
			return
		}
	}
}

// milli is v in thousandths, further decimals dropped. To multiply and truncate would take one from
// every number whose product falls short of a whole, such as 1.001.
func milli(v float64) int64 {
	n := math.Round(v * tokenInMilli)
	if n/tokenInMilli > v {
		n--
	}
	return int64(n)
}

// Start does nothing: only what comes of a call counts.
func (*Throttle) Start(time.Duration) {}

// Fail takes one token.
func (t *Throttle) Fail(time.Duration) { t.add(-tokenInMilli) }

// Withdraw grants while more than half of the tokens are left.
func (t *Throttle) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	if 2*t.tokens.Load() <= t.bucket.Load().most {
		t.denied.Add(1)
		return Permit{}, false
	}
	return Permit{Charge: c, At: now}, true
}

// Return does nothing: the permit was free.
func (*Throttle) Return(time.Duration, Permit) {}

// Settle does nothing: a success counts once, when the call is finished.
func (*Throttle) Settle(time.Duration, Permit, bool) {}

// Finish adds TokenRatio if the call succeeded.
func (t *Throttle) Finish(_ time.Duration, e End) {
	if e != Failed {
		t.add(t.bucket.Load().ratio)
	}
}

// Balance is what is left above half of the bucket: how many failures it can take before it grants
// no more.
func (t *Throttle) Balance(time.Duration) float64 {
	return float64(max(2*t.tokens.Load()-t.bucket.Load().most, 0)) / (2 * tokenInMilli)
}

// Tokens is what the bucket holds: 0 to MaxTokens, with three decimals.
func (t *Throttle) Tokens() float64 { return float64(t.tokens.Load()) / tokenInMilli }

// Denied is how many withdrawals have been refused so far.
func (t *Throttle) Denied() uint64 { return t.denied.Load() }

// add changes the bucket within its bounds, and writes only if that changes anything.
func (t *Throttle) add(n int64) {
	for {
		old := t.tokens.Load()
		fresh := min(max(old+n, 0), t.bucket.Load().most)
		if fresh == old || t.tokens.CompareAndSwap(old, fresh) {
			return
		}
	}
}
