// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// check returns all errors in r, each with its place.
func (r *Report) check() error {
	errs := []error{named("report: title", r.Title)}
	for i, s := range r.Sections {
		place := fmt.Sprintf("report: sections[%d]", i)
		errs = append(errs, named(place+".title", s.Title))
		for k, t := range s.Tables {
			errs = append(errs, t.check(fmt.Sprintf("%s.tables[%d] (%s)", place, k, t.Title)))
		}
		for k, p := range s.Plots {
			errs = append(errs, p.check(fmt.Sprintf("%s.plots[%d] (%s)", place, k, p.Title)))
		}
	}
	return errors.Join(errs...)
}

func named(place, name string) error {
	if name == "" {
		return fmt.Errorf("%s: empty: must say what it is", place)
	}
	return nil
}

func (t *Table) check(place string) error {
	if len(t.Columns) == 0 {
		return fmt.Errorf("%s.columns: none: must have at least one", place)
	}
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("%s.rows[%d]: %d cells: must have %d, as there are columns", place, i, len(row), len(t.Columns))
		}
	}
	return nil
}

func (p *Plot) check(place string) error {
	errs := []error{named(place+".title", p.Title)}
	if !slices.Contains([]Kind{Line, Bars, Histogram}, p.Kind) {
		errs = append(errs, fmt.Errorf("%s.kind: %q: must be %q, %q or %q", place, p.Kind, Line, Bars, Histogram))
	}
	if p.Kind != Bars && len(p.Labels) > 0 {
		errs = append(errs, fmt.Errorf("%s.labels: %q: must be empty, since only bars have labels", place, p.Labels))
	}
	if p.Kind == Bars && (p.LogY || p.YMax != 0) {
		errs = append(errs, fmt.Errorf("%s: logY %v, yMax %v: must be false and 0, since bars are drawn from 0 to their ends", place, p.LogY, p.YMax))
	}
	if len(p.Series) == 0 {
		errs = append(errs, fmt.Errorf("%s.series: none: must have at least one", place))
	}
	names := map[string]bool{}
	for i, s := range p.Series {
		at := fmt.Sprintf("%s.series[%d] (%s)", place, i, s.Name)
		if names[s.Name] {
			errs = append(errs, fmt.Errorf("%s: %q: must have a name of its own", at, s.Name))
		}
		names[s.Name] = true
		errs = append(errs, named(at+".name", s.Name), p.checkLengths(at, s), finite(at+".x", s.X), p.checkValues(at+".y", s.Y))
	}
	for i, l := range p.Levels {
		at := fmt.Sprintf("%s.levels[%d]", place, i)
		errs = append(errs, named(at+".name", l.Name), p.checkValues(at+".y", []float64{l.Y}))
	}
	if p.YMax < 0 || math.IsNaN(p.YMax) || math.IsInf(p.YMax, 0) {
		errs = append(errs, fmt.Errorf("%s.yMax: %v: must be a number above 0, or 0 for none", place, p.YMax))
	}
	return errors.Join(errs...)
}

// checkLengths compares how many X, Y and labels there are.
func (p *Plot) checkLengths(at string, s Series) error {
	x, y := len(s.Y), len(s.Y)
	switch p.Kind {
	case Line:
	case Bars:
		x, y = 0, len(p.Labels)
	case Histogram:
		x++
		if !slices.IsSorted(s.X) {
			return fmt.Errorf("%s.x: %v: must be in ascending order", at, s.X)
		}
	}
	if len(s.Y) == 0 {
		return fmt.Errorf("%s: no y: must have at least one", at)
	}
	if len(s.X) != x || len(s.Y) != y {
		return fmt.Errorf("%s: %d x and %d y: must have %d and %d", at, len(s.X), len(s.Y), x, y)
	}
	return nil
}

func (p *Plot) checkValues(at string, values []float64) error {
	if i := slices.IndexFunc(values, func(v float64) bool { return v <= 0 }); p.LogY && i >= 0 {
		return fmt.Errorf("%s[%d]: %v: must be above 0 on a logarithmic axis", at, i, values[i])
	}
	return finite(at, values)
}

func finite(at string, values []float64) error {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s[%d]: %v: must be a finite number; leave the point out", at, i, v)
		}
	}
	return nil
}
