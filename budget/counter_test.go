// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync"
	"testing"
	"time"
)

// Not parallel: other tests would leave the goroutines one processor, and they would never meet.
func TestCounterLosesNothing(t *testing.T) {
	c := counter{make([]stripe, 1)}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200_000 {
				c.addToStripe(0, 2)
				c.addToStripe(0, -1)
			}
		})
	}
	wg.Wait()
	if got := c.sum(); got != 1_600_000 {
		t.Errorf("sum %d; want 1600000", got)
	}
}

// Whatever the clock's grain, each stripe has between half of its share of the calls and twice as much.
func TestCounterIsSpreadEvenly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 8, 64} {
		for _, grain := range []time.Duration{1, 41, 100, time.Microsecond, time.Millisecond} {
			c := counter{make([]stripe, n)}
			for i := range 100 * n {
				c.addToStripe(time.Duration(i)*grain, 1)
			}
			for i := range c.stripes {
				if calls := c.stripes[i].n.Load(); calls < 50 || calls > 200 {
					t.Errorf("grain %v: stripe %d of %d has %d calls; want about 100", grain, i, n, calls)
				}
			}
		}
	}
}
