// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/stagger-go/stagger/internal/document"
)

// distribution is how long something takes: "20ms", or an object with one shape.
func (f *fields) distribution(key string) *Distribution {
	const want = `must be a time such as "20ms", or one of fixed, exponential, uniform, normal, lognormal and bimodal`
	n := f.get(key)
	switch {
	case n == nil:
		return nil
	case n.Kind != document.Object:
		return &Distribution{A: f.duration(key, 0, 0, longestTime)}
	}
	in := f.object(f.under(key), n)
	if in == nil {
		return nil
	}
	defer in.end()
	if len(in.node.Entries) != 1 {
		f.wrong(key, want)
	}
	d := &Distribution{}
	switch {
	case in.has("fixed"):
		d.A = in.duration("fixed", 0, 0, longestTime)
	case in.has("exponential"):
		d.Shape, d.A = ShapeExponential, in.duration("exponential", 0, 0, longestTime)
	case in.has("uniform"):
		d.Shape = ShapeUniform
		d.A, d.B = in.pair("uniform", "from", "to")
		in.ordered("uniform", "to", d.A <= d.B, "from")
	case in.has("normal"):
		d.Shape = ShapeNormal
		d.A, d.B = in.pair("normal", "mean", "deviation")
	case in.has("lognormal"):
		d.Shape = ShapeLogNormal
		d.A, d.B = in.pair("lognormal", "median", "p99")
		in.ordered("lognormal", "p99", d.A > 0 && d.A <= d.B, "median, which must be more than 0s")
	case in.has("bimodal"):
		d = in.bimodal("bimodal")
	default:
		f.Skip(f.under(key))
	}
	return d
}

// bimodal is a time of which a part comes from another distribution.
func (f *fields) bimodal(key string) *Distribution {
	in := f.inside(key)
	if in == nil {
		return nil
	}
	defer in.end()
	for _, k := range []string{"usual", "slow", "part"} {
		if !in.has(k) {
			in.wrong(k, "a bimodal time is {usual: 10ms, slow: 200ms, part: 0.2}")
		}
	}
	d := &Distribution{Shape: ShapeBimodal, Usual: in.distribution("usual"), Slow: in.distribution("slow"), Part: in.number("part", 0, 1, true)}
	if d.Usual == nil || d.Slow == nil {
		return nil
	}
	return d
}

const longestTime = time.Hour

func (f *fields) pair(key, a, b string) (time.Duration, time.Duration) {
	in := f.inside(key)
	if in == nil {
		return 1, 1
	}
	defer in.end()
	for _, k := range []string{a, b} {
		if !in.has(k) {
			in.wrong(k, "must be a time")
		}
	}
	return in.duration(a, 1, 0, longestTime), in.duration(b, 1, 0, longestTime)
}

func (f *fields) ordered(key, b string, ok bool, a string) {
	if !ok {
		f.wrong(key, "%s must be at least %s", b, a)
	}
}
