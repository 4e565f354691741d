// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
)

// Limits on single values.
const (
	mostClients  = 10_000_000
	mostBackends = 100_000
	mostLength   = 24 * time.Hour
	mostRate     = 1e8
	mostBuckets  = 100_000
	mostTimes    = 1e6 // factor of a time or a rate
	mostPhases   = 10_000
	mostVariants = 100
	mostPolicies = 100
)

// always is a fallback that no value equals, so that the key is always written.
const always = -1

// defaultRecovery applies if a file sets none.
var defaultRecovery = Recovery{Success: 0.99, Window: 250 * time.Millisecond}

// scenario names the keys of the whole file.
func (c *codec) scenario(s *Scenario, f *document.Fields) {
	f.RequiredText("title", &s.Title)
	f.Text("about", &s.About)
	seed := int(max(s.Seed, 1))
	f.Int("seed", &seed, 1, 1, 1<<53)
	s.Seed = uint64(seed)
	s.Recovery = cmp.Or(s.Recovery, defaultRecovery)
	f.Object("recovery", func(f *document.Fields) {
		f.Number("success", &s.Recovery.Success, defaultRecovery.Success, 1, true)
		f.Duration("window", &s.Recovery.Window, defaultRecovery.Window, 25*time.Millisecond, time.Hour)
	})
	c.policies(&s.Policies, f)
	document.Objects(f, "services", &s.Services, (*Service).serviceKeys)
	document.Objects(f, "fleets", &s.Fleets, (*Fleet).fleetKeys)
	document.Objects(f, "variants", &s.Variants, c.variant)
	if f.Writing {
		document.Objects(f, "phases", &s.Phases, (*Phase).phaseKeys)
	} else {
		s.Phases, c.phasePaths = phases(f)
	}
	s.Bucket = cmp.Or(s.Bucket, s.bucket())
	f.Duration("bucket", &s.Bucket, s.bucket(), time.Millisecond, time.Hour)
}

// bucket returns the default bucket: a multiple of 100 ms that makes about two hundred buckets.
func (s *Scenario) bucket() time.Duration {
	return max((s.Length() / 200).Round(100*time.Millisecond), 200*time.Millisecond)
}

func (s *Service) serviceKeys(f *document.Fields) {
	f.RequiredText("name", &s.Name)
	f.Int("backends", &s.Backends, 1, 1, mostBackends)
	f.Int("workers", &s.Workers, 1, 1, 1_000_000)
	distribution(f, "time", &s.Time)
	f.Int("queue", &s.Queue, 0, 0, 100_000_000)
	word(f, "order", &s.Order, "FIFO", "LIFO")
	code(f, "refuse", &s.Refuse, codes.ResourceExhausted)
	word(f, "abandoned", &s.Abandoned, "SERVE", "DROP")
	f.Bool("reportsUtilization", &s.Reports, false)
	f.Bool("guard", &s.Guard, true)
	if s.Time == nil || s.Time.Mean() <= 0 {
		f.Wrong("time", "must be how long a worker needs for a request, more than 0s on average")
	}
	document.Objects(f, "calls", &s.Calls, func(c *Call, f *document.Fields) {
		c.callKeys(f)
		f.Int("clients", &c.Clients, 0, 1, mostBackends)
	})
}

func (c *Call) callKeys(f *document.Fields) {
	c.Work, c.Connections = cmp.Or(c.Work, 1), c.connections()
	f.RequiredText("service", &c.Service)
	f.Text("method", &c.Method)
	f.Text("policy", &c.Policy)
	f.Duration("deadline", &c.Deadline, 0, time.Millisecond, time.Hour)
	f.Number("work", &c.Work, 1, mostTimes, true)
	f.Int("connections", &c.Connections, 1, 1, 100_000)
	f.Int("attempts", &c.Attempts, 0, 1, 1000)
	distribution(f, "delay", &c.Delay)
	f.Number("loss", &c.Loss, 0, 1, false)
}

func (l *Fleet) fleetKeys(f *document.Fields) {
	l.Clients = max(l.Clients, 1)
	f.RequiredText("name", &l.Name)
	f.Int("clients", &l.Clients, 1, 1, mostClients)
	f.Number("rate", &l.Rate, 0, mostRate, true)
	distribution(f, "think", &l.Think)
	switch {
	case f.Has("rate", l.Rate > 0) == f.Has("think", l.Think != nil):
		f.Wrong("rate", "must be the calls per second of all clients together; or set think, each client's wait between calls, but not both")
	case f.Has("think", false) && (l.Think == nil || l.Think.Mean() <= 0):
		f.Wrong("think", "must be more than 0s on average")
	}
	document.OneOrMore(f, "calls", &l.Calls, func(c *Call, f *document.Fields) {
		c.Share = c.share()
		f.Number("share", &c.Share, 1, 1e6, true)
		c.callKeys(f)
		f.Require(`must be a time such as "1s": calls without a deadline are not simulated`, "deadline")
	})
	if len(l.Calls) == 0 {
		f.Wrong("calls", "must name a service and a deadline")
	}
}

func (c *codec) variant(v *Variant, f *document.Fields) {
	f.RequiredText("name", &v.Name)
	f.Text("policy", &v.All)
	f.Int("clients", &v.Clients, 0, 1, mostClients)
	f.Object("policies", func(f *document.Fields) {
		names := slices.Sorted(maps.Keys(v.Policies))
		if !f.Writing {
			v.Policies = map[string]string{}
			names = f.Keys()
		}
		for _, name := range names {
			to := v.Policies[name]
			f.Text(name, &to)
			v.Policies[name] = to
		}
	})
	c.text(f, "set", &v.Set, "keys of a policy's methodConfig entries, such as {admission: REFUSE}")
	if f.Has("guard", v.Guard != nil) {
		guard := v.Guard != nil && *v.Guard
		f.Bool("guard", &guard, !guard)
		v.Guard = &guard
	}
	f.Bool("blind", &v.Blind, false)
}

// text reads or writes an object, which is kept as JSON.
func (c *codec) text(f *document.Fields, key string, to *string, want string) {
	switch n := f.Get(key); {
	case f.Writing && *to != "":
		report := document.NewReport("")
		n := document.Parse(report, []byte(*to), document.Format{Name: "text", MayLack: true})
		if err := report.Err(); err != nil {
			c.failed = append(c.failed, fmt.Errorf("sim: %s cannot be written: %w", key, err))
		}
		f.Put(key, n)
	case n == nil:
	case n.Kind != document.Object:
		f.Misfit(f.Under(key), n, "must be "+want)
	default:
		text, _ := n.JSON(f.Report, f.Under(key))
		*to = string(text)
	}
}

// word reads or writes one of some values by its name. The first is the default.
func word[T ~uint8](f *document.Fields, key string, to *T, words ...string) {
	choices := map[string]T{}
	for i, w := range words {
		choices[w] = T(i)
	}
	document.Choice(f, key, to, 0, document.OneOf(words), choices)
}

func code(f *document.Fields, key string, to *codes.Code, fallback codes.Code) {
	choices := map[string]codes.Code{}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		choices[codename.Of(c)] = c
	}
	*to = cmp.Or(*to, fallback)
	document.Choice(f, key, to, fallback, "a status code such as UNAVAILABLE, and not OK", choices)
}

const longestTime = time.Hour

// shapes are the keys of distributions, each with the keys of its two times.
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

// distribution reads or writes a duration's distribution: "20ms", or an object with one shape.
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
				d.shapeKeys(in, s.key, s.a, s.b)
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

// shapeKeys names the keys of a shape; a and b are those of its two times.
func (d *Distribution) shapeKeys(f *document.Fields, shape, a, b string) {
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
		case d.A < 0 || d.B < 0: // already reported
			d.A, d.B = 1, 1
		case d.Shape == ShapeUniform && d.A > d.B:
			f.Wrong(shape, "%s must be at least %s", b, a)
		case d.Shape == ShapeLogNormal && (d.A <= 0 || d.A > d.B):
			f.Wrong(shape, "%s must be at least %s, which must be more than 0s", b, a)
		}
	}
}
