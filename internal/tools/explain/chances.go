// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Chances are the random numbers of an explanation: one for each decision; an attempt that is slow and then fails has two.
// The last one is used for all further decisions.
type Chances []float64

// Draw draws the random numbers of an explanation.
func Draw(seed uint64) Chances {
	random := rand.New(rand.NewPCG(seed, 0))
	drawn := make(Chances, 10)
	for i := range drawn {
		drawn[i] = random.Float64()
	}
	return drawn
}

// almostOne is the largest random number.
const almostOne = 1 - 1.0/(1<<53)

// waitWith returns the wait after event i with another random number. It plays the call without a deadline or other end,
// which a longer wait might not fit. It returns false if the call then takes another course.
func (a *Answer) waitWith(i int, drawn Chances, chance float64) (time.Duration, bool) {
	drawn = slices.Clone(drawn)
	drawn[min(i, len(drawn)-1)] = chance
	free := *a
	free.Cancel, free.Close = 0, 0
	other := free.playCall(0, drawn).Events
	if i >= len(other) || other[i].Attempt != a.Events[i].Attempt || other[i].Slow != a.Events[i].Slow {
		return 0, false
	}
	return other[i].Decision.Delay, true
}
