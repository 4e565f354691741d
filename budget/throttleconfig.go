// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
	"math"
)

// ThrottleConfig is what a [Throttle] is made from: retryThrottling of gRPC's service config.
type ThrottleConfig struct {
	// MaxTokens is what the bucket holds, and starts with. 1 to 1000 (gRFC A6).
	MaxTokens int
	// TokenRatio is what a call that succeeds adds. At least 0.001, and finite; decimals beyond the
	// third are dropped, as gRFC A6 says: 0.5466 is 0.546.
	TokenRatio float64
}

func (c ThrottleConfig) check() error {
	var tokens, ratio error
	if c.MaxTokens < 1 || c.MaxTokens > 1000 {
		tokens = fmt.Errorf("budget: MaxTokens %d: must be 1 to 1000", c.MaxTokens)
	}
	if !(c.TokenRatio >= 0.001) || math.IsInf(c.TokenRatio, 0) { // NaN too
		ratio = fmt.Errorf("budget: TokenRatio %v: must be at least 0.001, since decimals beyond the third are dropped, and finite",
			c.TokenRatio)
	}
	return errors.Join(tokens, ratio)
}

// milli is the config in milli-tokens. No call adds more than the bucket holds, so the smaller of the two
// behaves the same.
func (c ThrottleConfig) milli() (throttling, int64) {
	return throttling{milli(min(c.TokenRatio, float64(c.MaxTokens)))}, int64(c.MaxTokens) * tokenInMilli
}

// throttling is what a call that succeeds adds, in milli-tokens.
type throttling struct{ ratio int64 }

// milli is v in thousandths, further decimals dropped. To multiply and truncate would take one from
// every number whose product falls short of a whole, such as 1.001.
func milli(v float64) int64 {
	n := math.Round(v * tokenInMilli)
	if n/tokenInMilli > v {
		n--
	}
	return int64(n)
}
