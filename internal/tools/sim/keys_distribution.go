// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/stagger-go/stagger/internal/document"
)

const longestTime = time.Hour

// shapes are the keys of distributions, with those of their two times.
var shapes = []struct {
	key   string
	shape Shape
	a, b  string
}{
	{"fixed", ShapeFixed, "", ""},
	{"exponential", ShapeExponential, "", ""},
	{"uniform", ShapeUniform, "from", "to"},
	{"normal", ShapeNormal, "mean", "deviation"},
	{"lognormal", ShapeLogNormal, "median", "p99"},
	{"bimodal", ShapeBimodal, "", ""},
}

// distribution is how long something takes: "20ms", or an object with one shape.
func distribution(f *document.Fields, key string, to **Distribution) {
	n := f.Get(key)
	if !f.Has(key, *to != nil) {
		return
	}
	var d Distribution
	if f.Writing {
		d = **to
	}
	if f.Writing && d.Shape == ShapeFixed || n != nil && n.Kind != document.Object {
		f.Duration(key, &d.A, always, 0, longestTime)
		*to = &d
		return
	}
	if n != nil && len(n.Entries) != 1 {
		f.Wrong(key, `must be a time such as "20ms", or one of fixed, exponential, uniform, normal, lognormal and bimodal`)
	}
	known := false
	f.Object(key, func(in *document.Fields) {
		for _, s := range shapes {
			if in.Has(s.key, d.Shape == s.shape) {
				known, d.Shape = true, s.shape
				d.keys(in, s.key, s.a, s.b)
			}
		}
	})
	if !f.Writing && !known {
		f.Skip(f.Under(key))
	}
	if *to = &d; d.Shape == ShapeBimodal && (d.Usual == nil || d.Slow == nil) {
		*to = nil
	}
}

// keys are those of a shape, whose two times are called a and b.
func (d *Distribution) keys(f *document.Fields, shape, a, b string) {
	switch {
	case d.Shape == ShapeBimodal:
		f.Object(shape, func(f *document.Fields) {
			f.Require("a bimodal time is {usual: 10ms, slow: 200ms, part: 0.2}", "usual", "slow", "part")
			distribution(f, "usual", &d.Usual)
			distribution(f, "slow", &d.Slow)
			f.Number("part", &d.Part, 0, 1, true)
		})
	case a == "":
		f.Duration(shape, &d.A, always, 0, longestTime)
	default:
		f.Object(shape, func(f *document.Fields) {
			f.Require("must be a time", a, b)
			f.Duration(a, &d.A, always, 0, longestTime)
			f.Duration(b, &d.B, always, 0, longestTime)
		})
		switch {
		case d.A < 0 || d.B < 0: // reported
			d.A, d.B = 1, 1
		case d.Shape == ShapeUniform && d.A > d.B:
			f.Wrong(shape, "%s must be at least %s", b, a)
		case d.Shape == ShapeLogNormal && (d.A <= 0 || d.A > d.B):
			f.Wrong(shape, "%s must be at least %s, which must be more than 0s", b, a)
		}
	}
}
