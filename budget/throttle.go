// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

// ThrottleConfig is retryThrottling of gRPC's service config (gRFC A6): a failed attempt takes a token, a successful call adds
// TokenRatio, and extra attempts are granted while the bucket is more than half full. They cost nothing, so nothing is
// returned. Time and kind don't matter, except that [CauseUnsent] is always granted.
type ThrottleConfig struct {
	// MaxTokens is the capacity of the bucket, which starts full. 1 to 1000 (gRFC A6).
	MaxTokens int
	// TokenRatio is the number of tokens that a successful call adds. At least 0.001, and finite; decimals after the third are
	// dropped, as in gRFC A6: 0.5466 is 0.546.
	TokenRatio float64
}

func (c ThrottleConfig) fields() []bounds.Field {
	return []bounds.Field{
		{Name: "MaxTokens", Value: float64(c.MaxTokens), Low: 1, High: 1000},
		{Name: "TokenRatio", Value: c.TokenRatio, Low: 0.001, High: math.MaxFloat64, Decimals: -1},
	}
}

func (c ThrottleConfig) check() error { return bounds.Check(c.fields()) }

func (c ThrottleConfig) budget() kind { return newThrottle(c) }

// success returns what a successful call adds, in thousandths, at most the capacity. Multiplying and truncating would lose one
// for numbers such as 1.001, whose product is just below a whole.
func (c ThrottleConfig) success() int64 {
	ratio := min(c.TokenRatio, float64(c.MaxTokens))
	n := milli(ratio)
	if float64(n)/1000 > ratio {
		n--
	}
	return n
}

// throttleBudget is the token bucket of gRFC A6. If the bucket is full, a successful call only reads.
type throttleBudget struct {
	indifferent
	tally

	bucket  bucket
	success int64 // guarded by the bucket's mu
}

func newThrottle(c ThrottleConfig) *throttleBudget {
	t := new(throttleBudget)
	t.configure(c)
	t.bucket.addTokens(t.bucket.capacity)
	return t
}

func (t *throttleBudget) configure(c ThrottleConfig) {
	t.success = c.success()
	t.bucket.resize(int64(c.MaxTokens) * 1000)
}

// Reload changes the config. The bucket stays equally full, relative to MaxTokens.
func (t *throttleBudget) Reload(_ time.Duration, c Config) error {
	own, err := checked[ThrottleConfig](c)
	if err != nil {
		return err
	}
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.configure(own)
	return nil
}

// Kind returns the name of its kind.
func (*throttleBudget) Kind() string { return "throttle" }

// Drain leaves at most half of the tokens, with which nothing is granted.
func (t *throttleBudget) Drain(time.Duration) {
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.bucket.addTokens(min(t.bucket.capacity/2-t.bucket.tokens, 0))
}

// Fresh reports whether the bucket is full.
func (t *throttleBudget) Fresh(time.Duration) bool { return t.bucket.full.Load() }

// Fail takes one token.
func (t *throttleBudget) Fail(time.Duration) {
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.bucket.addTokens(-1000)
}

// Withdraw grants while more than half of the tokens are left, and always grants [CauseUnsent].
func (t *throttleBudget) Withdraw(now time.Duration, c Charge) (Permit, bool) {
	if tokens, capacity := t.bucket.tokensAndCapacity(); 2*tokens <= capacity && c.Cause != CauseUnsent {
		t.denied.Add(1)
		return Permit{}, false
	}
	return Permit{Cause: c.Cause, at: now}, true
}

// Settle only counts.
func (t *throttleBudget) Settle(time.Duration, Permit, bool) { t.granted.Add(1) }

// Finish adds TokenRatio if the call succeeded.
func (t *throttleBudget) Finish(_ time.Duration, e Event) {
	if e == EventCallFailed || t.bucket.full.Load() {
		return
	}
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.bucket.addTokens(t.success)
}

// Balance returns the tokens above half of the bucket: the number of failures until nothing is granted.
func (t *throttleBudget) Balance(time.Duration) float64 {
	tokens, capacity := t.bucket.tokensAndCapacity()
	return float64(max(2*tokens-capacity, 0)) / 2000
}

// Capacity returns the balance of a full bucket: half of MaxTokens.
func (t *throttleBudget) Capacity(time.Duration) float64 {
	_, capacity := t.bucket.tokensAndCapacity()
	return float64(capacity) / 2000
}
