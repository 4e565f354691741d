// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package bounds checks the numbers of a budget's config.
package bounds

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Field is a value of a config and its bounds.
type Field struct {
	Name      string // of the struct's field
	Value     float64
	Low, High float64 // inclusive; a High of [math.MaxFloat64] means no upper bound
	Decimals  int     // the maximum, because budgets count in whole parts of a token; 0: a whole number, -1: any
	Unit      string  // of value and bounds: "s", or ""
}

// OfBudget returns the fields of a budget.Config, with their bounds. Package budget, which imports this one, sets it when a program starts.
var OfBudget func(config any) []Field

// Error is an error in one field of a config.
type Error struct {
	Field   string
	Value   string
	Message string // the allowed values
}

// Error returns a text such as "budget: Percent 0: must be 0.0001 to 1000".
func (e *Error) Error() string { return "budget: " + e.Field + " " + e.Value + ": " + e.Message }

// Errors returns an error for each field that is out of bounds.
func Errors(fields []Field) (errs []*Error) {
	for _, f := range fields {
		if wrong := f.wrong(); wrong != "" {
			errs = append(errs, &Error{Field: f.Name, Value: f.print(f.Value), Message: wrong})
		}
	}
	return errs
}

// Check returns the errors of [Errors], joined by [errors.Join].
func Check(fields []Field) error {
	wrong := Errors(fields)
	errs := make([]error, len(wrong))
	for i, err := range wrong {
		errs[i] = err
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
