// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"testing"

	"github.com/stagger-go/stagger/budget"
)

// The error says which field, what stands there, and what may.
func TestNewThrottleNamesEveryBadField(t *testing.T) {
	t.Parallel()
	const (
		tokens = ": must be 1 to 1000"
		ratio  = ": must be at least 0.001, since decimals beyond the third are dropped, and finite"
	)
	for _, c := range []struct {
		config budget.ThrottleConfig
		want   string
	}{
		{budget.ThrottleConfig{MaxTokens: 0, TokenRatio: 0.1}, "budget: MaxTokens 0" + tokens},
		{budget.ThrottleConfig{MaxTokens: -1, TokenRatio: 0.1}, "budget: MaxTokens -1" + tokens},
		{budget.ThrottleConfig{MaxTokens: 1001, TokenRatio: 0.1}, "budget: MaxTokens 1001" + tokens},
		{budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0}, "budget: TokenRatio 0" + ratio},
		{budget.ThrottleConfig{MaxTokens: 10, TokenRatio: -1}, "budget: TokenRatio -1" + ratio},
		{budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.0009}, "budget: TokenRatio 0.0009" + ratio},
		{budget.ThrottleConfig{MaxTokens: 10, TokenRatio: math.NaN()}, "budget: TokenRatio NaN" + ratio},
		{budget.ThrottleConfig{MaxTokens: 10, TokenRatio: math.Inf(1)}, "budget: TokenRatio +Inf" + ratio},
		{budget.ThrottleConfig{}, "budget: MaxTokens 0" + tokens + "\nbudget: TokenRatio 0" + ratio},
	} {
		b, err := budget.NewThrottle(c.config)
		if err == nil || b != nil {
			t.Errorf("NewThrottle(%+v) = %v, %v; want nil and an error", c.config, b, err)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("error\n%v; want\n%v", err, c.want)
		}
	}
}
