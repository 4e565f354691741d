// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Times draws lognormal times, the same ones from the same seed. It is safe for concurrent use.
type Times struct {
	mu     sync.Mutex // guards random
	random *rand.Rand
	median time.Duration
	sigma  float64
}

// NewTimes returns times around a median. sigma is the standard deviation of their logarithms.
func NewTimes(median time.Duration, sigma float64, seed uint64) *Times {
	return &Times{random: rand.New(rand.NewPCG(1, seed)), median: median, sigma: sigma}
}

// Draw draws a time.
func (t *Times) Draw() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(float64(t.median) * math.Exp(t.sigma*t.random.NormFloat64()))
}

// Chance draws a number in [0, 1), as interceptor.WithRandom wants it.
func (t *Times) Chance() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.random.Float64()
}

// Wait draws the time to the next of calls that come independently of each other.
func (t *Times) Wait(perSecond float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.random.ExpFloat64() / perSecond * float64(time.Second))
}
