// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// distribution is how long something takes: "20ms", or an object with one shape.
func (f *fields) distribution(key string) *Distribution {
	const want = `must be a time such as "20ms", or one of fixed, exponential, uniform, normal and lognormal`
	n := f.get(key)
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.ScalarNode:
		return &Distribution{A: f.duration(key, 0, 0, longestTime)}
	}
	in := f.object(f.under(key), n)
	if in == nil {
		return nil
	}
	defer in.end()
	if len(in.order) != 1 {
		f.wrong(key, want)
	}
	d := &Distribution{}
	switch {
	case in.has("exponential"):
		d.Shape, d.A = Exponential, in.duration("exponential", 0, 0, longestTime)
	case in.has("uniform"):
		d.Shape = Uniform
		d.A, d.B = in.pair("uniform", "from", "to")
		in.ordered("uniform", "to", d.A <= d.B, "from")
	case in.has("normal"):
		d.Shape = Normal
		d.A, d.B = in.pair("normal", "mean", "deviation")
	case in.has("lognormal"):
		d.Shape = LogNormal
		d.A, d.B = in.pair("lognormal", "median", "p99")
		in.ordered("lognormal", "p99", d.A > 0 && d.A <= d.B, "median, which must be more than 0s")
	default:
		in.asked = strings.Split("exponential uniform normal lognormal", " ")
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
