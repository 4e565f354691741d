// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Config is what a budget is made from: a [RatioConfig], [ThrottleConfig], [ConcurrentConfig], [RefundConfig] or that of [Default].
type Config interface {
	// Name is what a policy file calls budgets of this kind: one of [Names].
	Name() string
	// Fields lists the values and their bounds.
	Fields() []Field
	// Check returns nil, or a [*FieldError] for each field that is out of bounds, joined by [errors.Join].
	Check() error

	// budget makes a budget. The config has been checked.
	budget(of LeaseOf) (Reloadable, error)
}

// Names lists the kinds of budgets, as policy files call them.
func Names() []string { return []string{"ratio", "throttle", "concurrent", "refund"} }

// New makes a budget of the config's kind. Pools that it names, now or after a reload, are leased by of; without it they
// are refused. The error is else that of [Config.Check].
func New(c Config, of LeaseOf) (Reloadable, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return c.budget(of)
}

// checked returns the config as that of one kind, if it is and nothing is out of bounds.
func checked[C Config](c Config) (C, error) {
	own, ok := c.(C)
	if !ok {
		return own, fmt.Errorf("budget: must stay a %T, and not become a %T", own, c)
	}
	return own, own.Check()
}

// Field is a value of a [Config] and its bounds.
type Field struct {
	Name      string // of the struct's field
	Value     float64
	Low, High float64 // both are allowed; a High of [math.MaxFloat64] says that there is none
	Decimals  int     // at most, since budgets count in whole parts of a token; 0: a whole number, -1: any
	Unit      string  // of value and bounds: "s", or none
}

// FieldError says what is wrong with one field of a config.
type FieldError struct {
	Field   string
	Value   string
	Message string // what the value must be
}

// Error is such as "budget: Percent 0: must be 0.0001 to 1000".
func (e *FieldError) Error() string { return "budget: " + e.Field + " " + e.Value + ": " + e.Message }

// check lists the fields that are out of bounds.
func check(fields []Field) error {
	var errs []error
	for _, f := range fields {
		if wrong := f.wrong(); wrong != "" {
			errs = append(errs, &FieldError{Field: f.Name, Value: f.print(f.Value), Message: wrong})
		}
	}
	return errors.Join(errs...)
}

// flat joins errors, those that are joined already one by one, so that each field's stands by itself.
func flat(errs ...error) error {
	var list []error
	for _, err := range errs {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			list = append(list, joined.Unwrap()...)
		} else {
			list = append(list, err)
		}
	}
	return errors.Join(list...)
}

// wrong says what the value must be; "" if it is.
func (f Field) wrong() string {
	scale := math.Pow10(f.Decimals)
	rounded := math.Round(f.Value*scale) / scale
	switch {
	case !(f.Value >= f.Low && f.Value <= f.High): // NaN too
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

// micro and milli are tokens in millionths and thousandths, exactly: with at most four decimals, or three.
func micro(tokens float64) int64 { return int64(math.Round(tokens*1e4)) * 100 }
func milli(tokens float64) int64 { return int64(math.Round(tokens * 1e3)) }
