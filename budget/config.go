// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"math"

	"github.com/stagger-go/stagger/internal/bounds"
)

// Config is the config of a budget: a [RatioConfig], [ThrottleConfig], [ConcurrentConfig] or [Default]. All fields count,
// even zeros: set all of them, or start from [DefaultRatio].
type Config interface {
	fields() []bounds.Field // the values and their bounds
	check() error           // a [*bounds.Error] for each field that is out of bounds, joined by [errors.Join]
	budget() kind           // a new budget. The config has been checked.
}

// checked returns the config as a C, if it is one and within bounds.
func checked[C Config](c Config) (C, error) {
	own, ok := c.(C)
	if !ok {
		return own, fmt.Errorf("budget: must stay a %T, and not become a %T", own, c)
	}
	return own, own.check()
}

// micro and milli convert tokens to millionths and thousandths, exactly: they have at most four decimals, or three.
func micro(tokens float64) int64 { return int64(math.Round(tokens*1e4)) * 100 }
func milli(tokens float64) int64 { return int64(math.Round(tokens * 1e3)) }
