// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"math/rand/v2"
	"sync"
	"time"
)

// chance is a source of random numbers for many goroutines.
type chance struct {
	mu     sync.Mutex
	source *rand.Rand
}

func newChance(seed uint64) *chance { return &chance{source: rand.New(rand.NewPCG(seed, 0))} }

func (c *chance) float() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.source.Float64()
}

// of returns true with the probability p.
func (c *chance) of(p float64) bool { return c.float() < p }

// upTo returns a time below d.
func (c *chance) upTo(d time.Duration) time.Duration { return time.Duration(c.float() * float64(d)) }

// pick returns an element of the list.
func pick[T any](c *chance, list []T) T { return list[int(c.float()*float64(len(list)))] }
