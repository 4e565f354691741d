// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Config is the config of a budget: a [RatioConfig], [ThrottleConfig], [ConcurrentConfig] or that of [Default].
type Config interface {
	name() string    // of the kind in policy files: one of [Names]
	fields() []Field // the values and their bounds
	check() error    // a [*FieldError] for each field that is out of bounds, joined by [errors.Join]

	// budget returns a new budget. The config has been checked.
	budget() Reloadable
}

// Name returns the name of a config's kind in policy files: one of [Names].
func Name(c Config) string { return c.name() }

// Fields returns the values of a config and their bounds.
func Fields(c Config) []Field { return c.fields() }

// Check returns nil, or a [*FieldError] for each field that is out of bounds, joined by [errors.Join].
func Check(c Config) error { return c.check() }

// Names returns the names of the kinds, as in policy files.
func Names() []string { return []string{"ratio", "throttle", "concurrent"} }

// New returns a budget of the config's kind. The errors are those of [Check].
func New(c Config) (Reloadable, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.budget(), nil
}

// checked returns the config as a C, if it is one and within bounds.
func checked[C Config](c Config) (C, error) {
	own, ok := c.(C)
	if !ok {
		return own, fmt.Errorf("budget: must stay a %T, and not become a %T", own, c)
	}
	return own, own.check()
}

// Field is a value of a [Config] and its bounds.
type Field struct {
	Name      string // of the struct's field
	Value     float64
	Low, High float64 // inclusive; a High of [math.MaxFloat64] means no upper bound
	Decimals  int     // the maximum, because budgets count in whole parts of a token; 0: a whole number, -1: any
	Unit      string  // of value and bounds: "s", or ""
}

// FieldError is an error in one field of a config.
type FieldError struct {
	Field   string
	Value   string
	Message string // the allowed values
}

// Error returns a text such as "budget: Percent 0: must be 0.0001 to 1000".
func (e *FieldError) Error() string { return "budget: " + e.Field + " " + e.Value + ": " + e.Message }

// checkFields returns an error for each field that is out of bounds.
func checkFields(fields []Field) error {
	var errs []error
	for _, f := range fields {
		if wrong := f.wrong(); wrong != "" {
			errs = append(errs, &FieldError{Field: f.Name, Value: f.print(f.Value), Message: wrong})
		}
	}
	return errors.Join(errs...)
}

// wrong returns what the value must be, or "" if it is allowed.
func (f Field) wrong() string {
	scale := math.Pow10(f.Decimals)
	rounded := math.Round(f.Value*scale) / scale
	switch {
	case !(f.Value >= f.Low && f.Value <= f.High): // also false for NaN
		return "must be " + f.bounds()
	case f.Decimals < 0 || rounded == f.Value:
		return ""
	default:
		return fmt.Sprintf("must have at most %d decimals, such as %s", f.Decimals, f.print(rounded))
	}
}

func (f Field) bounds() string {
	number := ""
	if f.Decimals == 0 {
		number = "a whole number from "
	}
	if f.High == math.MaxFloat64 {
		return "at least " + f.print(f.Low) + ", and finite"
	}
	return number + f.print(f.Low) + " to " + f.print(f.High)
}

func (f Field) print(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + f.Unit }

// micro and milli convert tokens to millionths and thousandths, exactly: they have at most four decimals, or three.
func micro(tokens float64) int64 { return int64(math.Round(tokens*1e4)) * 100 }
func milli(tokens float64) int64 { return int64(math.Round(tokens * 1e3)) }
