// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"testing"
)

// plays is how often something is played, at most. What one play of a hundred misses, one of a million misses three times; what a change
// has broken, each play misses.
const plays = 3

// Judge plays and judges something that is also decided by chance, until one play is right: by the jitter of others' retries, which can't
// be seeded, or by the order of what happens in one instant. The test fails, with the errors of the last play, if none of three is.
// Errors that play reports to the T that it gets count as misses; Fatal ends the test at once.
func Judge(tb testing.TB, play func(t testing.TB)) {
	tb.Helper()
	for n := 1; ; n++ {
		one := &trial{TB: tb}
		play(one)
		if len(one.missed) == 0 {
			return
		}
		if n == plays {
			for _, text := range one.missed {
				tb.Errorf("in each of %d plays, here in the last: %s", plays, text)
			}
			return
		}
		tb.Logf("play %d of %d, which chance may have decided: %q", n, plays, one.missed)
	}
}

// trial keeps the errors of a play.
type trial struct {
	testing.TB

	missed []string
}

func (o *trial) Error(args ...any) { o.missed = append(o.missed, fmt.Sprint(args...)) }

func (o *trial) Errorf(format string, args ...any) {
	o.missed = append(o.missed, fmt.Sprintf(format, args...))
}

func (o *trial) Failed() bool { return len(o.missed) > 0 || o.TB.Failed() }
