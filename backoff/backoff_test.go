// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/backoff"
)

const (
	ms = time.Millisecond
	// almostOne is the largest random number.
	almostOne = 1 - 1.0/(1<<53)
)

// Each row is a formula of the package's comments at its edges: random number 0, one half, and the largest.
func TestDelay(t *testing.T) {
	t.Parallel()
	exponential := backoff.Config{Initial: 100 * ms, Max: 1000 * ms, Multiplier: 2}
	with := func(j backoff.Jitter, multiplier float64) backoff.Config {
		c := exponential
		c.Jitter, c.Multiplier = j, multiplier
		return c
	}
	grows := func(g backoff.Growth, multiplier float64) backoff.Config {
		c := with(backoff.JitterNone, multiplier)
		c.Growth = g
		return c
	}
	both := func(initial, longest time.Duration, j backoff.Jitter) backoff.Config {
		return backoff.Config{Initial: initial, Max: longest, Multiplier: 2, Jitter: j}
	}
	none, linear := with(backoff.JitterNone, 2), backoff.GrowthLinear
	full, equal := with(backoff.JitterFull, 2), with(backoff.JitterEqual, 2)
	decorrelated, proportional := with(backoff.JitterDecorrelated, 2), with(backoff.JitterProportional, 2)
	for _, row := range []struct {
		name     string
		config   backoff.Config
		retry    int
		previous time.Duration
		r        float64
		want     time.Duration
	}{
		{"exponential first", none, 0, 0, 0.5, 100 * ms},
		{"exponential third", none, 2, 0, 0.5, 400 * ms},
		{"exponential by name", grows(backoff.GrowthExponential, 3), 2, 0, 0.5, 900 * ms},
		{"exponential capped", none, 4, 0, 0.5, 1000 * ms},
		{"exponential at retry 1,000,000", none, 1_000_000, 0, 0.5, 1000 * ms},
		{"exponential below one shrinks", with(backoff.JitterNone, 0.5), 1, 0, 0, 50 * ms},
		{"linear first", grows(linear, 0.5), 0, 0, 0, 100 * ms},
		{"linear third", grows(linear, 0.5), 2, 0, 0, 200 * ms},
		{"linear capped", grows(linear, 2), 50, 0, 0, 1000 * ms},
		{"fixed", grows(backoff.GrowthFixed, 1), 7, 0, 0, 100 * ms},
		{"fixed has no multiplier", grows(backoff.GrowthFixed, 0), 7, 0, 0, 100 * ms},
		{"a retry before the first is the first", none, -3, 0, 0.5, 100 * ms},

		{"full lowest", full, 1, 0, 0, 0},
		{"full middle", full, 1, 0, 0.5, 100 * ms},
		{"full highest", full, 1, 0, almostOne, 200*ms - 1},
		{"full at the cap", full, 100, 0, 0.25, 250 * ms},
		{"full is the default", exponential, 1, 0, 0.25, 50 * ms},
		{"equal lowest", equal, 1, 0, 0, 100 * ms},
		{"equal middle", equal, 1, 0, 0.5, 150 * ms},
		{"equal high", equal, 1, 0, 0.75, 175 * ms},
		{"equal at the cap", equal, 100, 0, 0.5, 750 * ms},
		{"proportional lowest", proportional, 0, 0, 0, 80 * ms},
		{"proportional middle", proportional, 0, 0, 0.5, 100 * ms},
		{"proportional high", proportional, 0, 0, 0.75, 110 * ms},
		{"proportional goes past the cap as gRPC's does", proportional, 100, 0, 0.75, 1100 * ms},
		{"decorrelated first", decorrelated, 0, 0, 0.5, 200 * ms},
		{"decorrelated later", decorrelated, 1, 200 * ms, 0.5, 350 * ms},
		{"decorrelated lowest", decorrelated, 5, 900 * ms, 0, 100 * ms},
		{"decorrelated caps before it draws", decorrelated, 5, 900 * ms, 0.5, 550 * ms},

		{"initial above max", both(time.Hour, ms, backoff.JitterNone), 0, 0, 0, ms},
		{"decorrelated with initial above max", both(time.Hour, ms, backoff.JitterDecorrelated), 0, 0, 0.5, ms},
		{"longest duration, as it is", both(math.MaxInt64, math.MaxInt64, backoff.JitterNone), 0, 0, 0, math.MaxInt64},
		{"longest duration", both(math.MaxInt64, math.MaxInt64, backoff.JitterProportional), 9, 0, almostOne, math.MaxInt64},
		{"longest duration before", both(1, math.MaxInt64, backoff.JitterDecorrelated), 9, math.MaxInt64, 1, math.MaxInt64},

		{"a random number below 0 is 0", equal, 0, 0, -1, 50 * ms},
		{"a random number above 1 is 1", equal, 0, 0, 7, 100 * ms},
		{"without a random number there is no delay", equal, 0, 0, math.NaN(), 0},
		{"no config", backoff.Config{}, 3, time.Second, 0.5, 0},
		{"no multiplier", with(backoff.JitterNone, math.NaN()), 3, 0, 0.5, 0},
		{"an unknown jitter is full", with("full", 2), 0, 0, 0.25, 25 * ms},
		{"an unknown growth is exponential", grows("linear", 2), 2, 0, 0, 400 * ms},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.config.Delay(row.retry, row.previous, row.r); got != row.want {
				t.Errorf("%+v: Delay(%d, %v, %v) = %v; want %v", row.config, row.retry, row.previous, row.r, got, row.want)
			}
		})
	}
}

var (
	growths = []backoff.Growth{"", backoff.GrowthExponential, backoff.GrowthLinear, backoff.GrowthFixed}
	jitters = []backoff.Jitter{
		"", backoff.JitterNone, backoff.JitterFull, backoff.JitterEqual, backoff.JitterDecorrelated, backoff.JitterProportional,
	}
)

// Whatever the config and the arguments, also invalid ones: no overflow, and no delay beyond Max.
func TestDelay_Bounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := backoff.Config{
			Initial:    time.Duration(rapid.Int64().Draw(t, "initial")),
			Max:        time.Duration(rapid.Int64().Draw(t, "max")),
			Multiplier: anyFloat(t, "multiplier"),
			Growth:     rapid.SampledFrom(append(growths, "OTHER")).Draw(t, "growth"),
			Jitter:     rapid.SampledFrom(append(jitters, "OTHER")).Draw(t, "jitter"),
		}
		retry := rapid.Int().Draw(t, "retry")
		previous := time.Duration(rapid.Int64().Draw(t, "previous"))
		r := anyFloat(t, "r")
		got, limit := c.Delay(retry, previous, r), max(float64(c.Max), 0)
		if c.Jitter == backoff.JitterProportional {
			limit *= 1.2
		}
		if got < 0 || float64(got) > limit*(1+1e-12) {
			t.Fatalf("%+v, Delay(%d, %v, %v) = %v; want 0s to %v", c, retry, previous, r, got, time.Duration(limit))
		}
	})
}

func anyFloat(t *rapid.T, name string) float64 {
	return rapid.OneOf(
		rapid.Float64(), rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, almostOne, math.NaN(), math.Inf(1), math.Inf(-1)}),
	).Draw(t, name)
}

// The bounds of each jitter that docs/backoff.md promises, for valid configs. The tolerance is what a float64 rounds.
func TestDelay_Ranges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := backoff.Config{
			Initial:    time.Duration(rapid.Int64Range(1, 1<<52).Draw(t, "initial")),
			Max:        time.Duration(rapid.Int64Range(1, 1<<52).Draw(t, "max")),
			Multiplier: rapid.Float64Range(1e-3, 1e3).Draw(t, "multiplier"),
			Growth:     rapid.SampledFrom(growths).Draw(t, "growth"),
			Jitter:     rapid.SampledFrom(jitters).Draw(t, "jitter"),
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		retry := rapid.IntRange(0, 100).Draw(t, "retry")
		previous := time.Duration(rapid.Int64Range(0, int64(c.Max)).Draw(t, "previous"))
		got := c.Delay(retry, previous, rapid.Float64Range(0, almostOne).Draw(t, "r"))
		plain := c
		plain.Jitter = backoff.JitterNone
		low, high := 0.0, float64(plain.Delay(retry, previous, 0))
		switch c.Jitter {
		case backoff.JitterNone:
			low = high
		case backoff.JitterEqual:
			low = high / 2
		case backoff.JitterProportional:
			low, high = 0.8*high, 1.2*high
		case backoff.JitterDecorrelated:
			low = float64(min(c.Initial, c.Max))
			high = min(float64(c.Max), max(3*float64(previous), 3*low))
		default:
		}
		if float64(got) < low-2 || float64(got) > high+2 {
			t.Fatalf("%+v, retry %d after %v: %v; want %v to %v", c, retry, previous, got, time.Duration(low), time.Duration(high))
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := backoff.Config{Initial: 1, Max: 1, Multiplier: 1}
	for _, row := range []struct {
		change func(*backoff.Config)
		want   string // lines
	}{
		{func(*backoff.Config) {}, ""},
		{func(c *backoff.Config) { c.Initial = time.Hour }, ""}, // above Max
		{func(c *backoff.Config) { c.Multiplier, c.Growth = 0, backoff.GrowthFixed }, ""},
		{func(c *backoff.Config) { c.Multiplier, c.Jitter = 0, backoff.JitterDecorrelated }, ""},
		{func(c *backoff.Config) { c.Growth, c.Jitter = backoff.GrowthLinear, backoff.JitterProportional }, ""},
		{func(c *backoff.Config) { c.Initial = 0 }, "Initial 0s: must be more than 0s"},
		{func(c *backoff.Config) { c.Max = -time.Second }, "Max -1s: must be more than 0s"},
		{func(c *backoff.Config) { c.Multiplier = 0 }, "Multiplier 0: must be a number more than 0"},
		{func(c *backoff.Config) { c.Multiplier = math.NaN() }, "Multiplier NaN: must be a number more than 0"},
		{func(c *backoff.Config) { c.Multiplier = math.Inf(1) }, "Multiplier +Inf: must be a number more than 0"},
		{func(c *backoff.Config) { c.Growth = "linear" }, "Growth linear: must be EXPONENTIAL, LINEAR or FIXED"},
		{func(c *backoff.Config) { c.Jitter = "SOME" }, "Jitter SOME: must be NONE, FULL, EQUAL, DECORRELATED or PROPORTIONAL"},
		{
			func(c *backoff.Config) { *c = backoff.Config{} },
			"Initial 0s: must be more than 0s\nMax 0s: must be more than 0s\nMultiplier 0: must be a number more than 0",
		},
	} {
		c := good
		row.change(&c)
		got := ""
		if err := c.Check(); err != nil {
			got = strings.ReplaceAll(err.Error(), "backoff: ", "")
		}
		if got != row.want {
			t.Errorf("%+v: %q; want %q", c, got, row.want)
		}
		if n := len(c.Errors()); (n == 0) != (row.want == "") || n > 0 && n != 1+strings.Count(row.want, "\n") {
			t.Errorf("%+v: %d errors; want those of %q", c, n, row.want)
		}
	}
	if err := fmt.Sprint(backoff.Config{Max: 1, Multiplier: 1}.Errors()); err != "[backoff: Initial 0s: must be more than 0s]" {
		t.Error(err)
	}
}
