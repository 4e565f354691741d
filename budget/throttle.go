// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"math"
	"time"

	"github.com/stagger-go/stagger/internal/bounds"
)

// ThrottleConfig is retryThrottling of gRPC's service config (gRFC A6): a failed attempt takes a token, a successful call adds TokenRatio,
// and extra attempts are allowed while the bucket is more than half full. Extra attempts themselves cost nothing. Time and [Cause] don't
// matter.
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

// Kind implements [Config].
func (ThrottleConfig) Kind() string { return "throttle" }

func (c ThrottleConfig) budget() Budget {
	t := new(throttleBudget)
	t.configure(c)
	t.bucket.addTokens(t.bucket.capacity)
	return t
}

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
	bucket  tokenBucket
	success int64 // guarded by the bucket's mu
}

func (t *throttleBudget) configure(c ThrottleConfig) {
	t.success = c.success()
	t.bucket.resize(int64(c.MaxTokens) * 1000)
}

// Observe implements [Budget]: a failed attempt takes one token, and a call that succeeds adds TokenRatio.
func (t *throttleBudget) Observe(_ time.Time, e Event) {
	if e != EventAttemptFailed && e != EventCallSucceeded || e == EventCallSucceeded && t.bucket.full.Load() {
		return
	}
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	switch e {
	case EventAttemptFailed:
		t.bucket.addTokens(-1000)
	case EventCallSucceeded:
		t.bucket.addTokens(t.success)
	default:
	}
}

// Allow implements [Budget]: more than half of the tokens must be left. It never says Later, because gRPC's throttle doesn't.
func (t *throttleBudget) Allow(time.Time, Cause) (Answer, func(time.Time, End)) {
	if tokens, capacity := t.bucket.tokensAndCapacity(); 2*tokens <= capacity {
		return No, nil
	}
	return Yes, nil
}

// State implements [Stater]: the balance is the number of failures until nothing is allowed. That of a full bucket is half of MaxTokens.
func (t *throttleBudget) State(time.Time) State {
	tokens, capacity := t.bucket.tokensAndCapacity()
	return State{Balance: float64(max(2*tokens-capacity, 0)) / 2000, Capacity: float64(capacity) / 2000}
}

// Reload changes the config. The bucket stays equally full, relative to MaxTokens. It refuses a config of another kind.
func (t *throttleBudget) Reload(_ time.Time, c Config) error {
	config, ok := c.(ThrottleConfig)
	if !ok {
		return errors.New("budget: must stay a throttle, and not become another kind")
	}
	if err := bounds.Check(config.fields()); err != nil {
		return err
	}
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.configure(config)
	return nil
}

// TimeToRetry returns 0: time adds nothing.
func (t *throttleBudget) TimeToRetry(time.Time) time.Duration { return 0 }
