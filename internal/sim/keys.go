// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Limits on single values.
const (
	mostClients  = 10_000_000
	mostBackends = 100_000
	mostLength   = 24 * time.Hour
	mostRate     = 1e8
	mostBuckets  = 100_000
	mostTimes    = 1e6 // factor of a time or a rate
	mostVariants = 100
	mostPolicies = 100
)

// missing is the fallback of a required time or number.
const missing = -1

// defaultRecovery applies if a file sets none.
var defaultRecovery = Recovery{Success: 0.99, Window: 250 * time.Millisecond}

// scenario names the keys of the whole file.
func (c *codec) scenario(s *Scenario, f *fields) {
	f.RequiredText("title", &s.Title)
	f.Text("about", &s.About)
	seed := int(max(s.Seed, 1))
	f.Int("seed", &seed, 1, 1, math.MaxInt32)
	s.Seed = uint64(seed)
	s.Recovery = cmp.Or(s.Recovery, defaultRecovery)
	f.Object("recovery", func(f *fields) {
		f.Number("success", &s.Recovery.Success, defaultRecovery.Success, 1, true)
		f.Duration("window", &s.Recovery.Window, defaultRecovery.Window, 25*time.Millisecond, time.Hour)
	})
	c.policies(&s.Policies, f)
	objects(f, "services", &s.Services, (*Service).serviceKeys)
	objects(f, "fleets", &s.Fleets, (*Fleet).fleetKeys)
	objects(f, "variants", &s.Variants, c.variant)
	objects(f, "phases", &s.Phases, (*Phase).phaseKeys)
	s.Bucket = cmp.Or(s.Bucket, s.bucket())
	f.Duration("bucket", &s.Bucket, s.bucket(), time.Millisecond, time.Hour)
}

// bucket returns the default bucket: a multiple of 100 ms that makes about two hundred buckets.
func (s *Scenario) bucket() time.Duration {
	return max((s.Length() / 200).Round(100*time.Millisecond), 200*time.Millisecond)
}

func (s *Service) serviceKeys(f *fields) {
	f.RequiredText("name", &s.Name)
	f.Int("backends", &s.Backends, 1, 1, mostBackends)
	f.Int("workers", &s.Workers, 1, 1, 1_000_000)
	distribution(f, "time", &s.Time)
	f.Int("queue", &s.Queue, 0, 0, 100_000_000)
	word(f, "order", &s.Order, "FIFO", "LIFO")
	code(f, "refuse", &s.Refuse, codes.ResourceExhausted)
	word(f, "abandoned", &s.Abandoned, "SERVE", "DROP")
	s.Guard = true
	f.Bool("guard", &s.Guard)
	f.Number("thrash", &s.Thrash, 1, mostTimes, true)
	f.Number("connect", &s.Connect, 0, mostTimes, true)
	s.cacheKeys(f)
	if f.Has("codel") {
		s.CoDel = new(CoDel)
		f.Object("codel", func(f *fields) {
			f.Require(`must be a time such as "100ms"`, "target", "interval")
			f.Duration("target", &s.CoDel.Target, missing, 0, longestTime)
			f.Duration("interval", &s.CoDel.Interval, missing, 0, longestTime)
		})
	}
	const needs = "must be how long a worker needs for a request, more than 0s on average"
	f.Require(needs, "time")
	if f.Has("time") && f.Whole(f.Under("time")) && (s.Time == nil || s.Time.Mean() <= 0) {
		f.Wrong("time", needs)
	}
	objects(f, "calls", &s.Calls, func(c *Call, f *fields) {
		c.callKeys(f)
		f.Int("clients", &c.Clients, 0, 1, mostBackends)
	})
}

func (s *Service) cacheKeys(f *fields) {
	if !f.Has("cache") {
		return
	}
	s.Cache = new(Cache)
	f.Object("cache", func(f *fields) {
		f.Require("a cache is {entries: 1000, ttl: 10s, hit: 1ms}", "entries", "ttl", "hit")
		f.Int("entries", &s.Cache.Entries, 1, 1, 1e9)
		f.Duration("ttl", &s.Cache.TTL, missing, time.Millisecond, mostLength)
		distribution(f, "hit", &s.Cache.Hit)
	})
}

func (c *Call) callKeys(f *fields) {
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
	f.Int("limit", &c.Limit, 0, 1, 1_000_000)
}

func (l *Fleet) fleetKeys(f *fields) {
	l.Clients = max(l.Clients, 1)
	f.RequiredText("name", &l.Name)
	f.Int("clients", &l.Clients, 1, 1, mostClients)
	f.Duration("lifetime", &l.Lifetime, 0, 10*time.Millisecond, mostLength)
	f.Number("rate", &l.Rate, missing, mostRate, true)
	f.Require("must be the calls per second of all clients together", "rate")
	oneOrMore(f, "calls", &l.Calls, func(c *Call, f *fields) {
		c.Share = c.share()
		f.Number("share", &c.Share, 1, 1e6, true)
		c.callKeys(f)
		f.Require(`must be a time such as "1s": calls without a deadline are not simulated`, "deadline")
	})
	f.Later(func() {
		if len(l.Calls) == 0 {
			f.Wrong("calls", "must name a service and a deadline")
		}
	})
}

func (c *codec) variant(v *Variant, f *fields) {
	f.RequiredText("name", &v.Name)
	f.Text("policy", &v.All)
	f.Int("clients", &v.Clients, 0, 1, mostClients)
	f.Object("policies", func(f *fields) {
		v.Policies = map[string]string{}
		for _, name := range f.Keys() {
			var to string
			f.Text(name, &to)
			v.Policies[name] = to
		}
	})
	if f.Has("guard") {
		v.Guard = new(bool)
		f.Bool("guard", v.Guard)
	}
	f.Bool("blind", &v.Blind)
	seed := int(v.ServiceSeed)
	f.Int("serviceSeed", &seed, 0, 0, math.MaxInt32)
	v.ServiceSeed = uint64(seed)
}

// word reads one of some values by its name. The first is the default.
func word[T ~uint8](f *fields, key string, to *T, words ...string) {
	choices := map[string]T{}
	for i, w := range words {
		choices[w] = T(i)
	}
	choice(f, key, to, 0, document.OneOf(words), choices)
}

func code(f *fields, key string, to *codes.Code, fallback codes.Code) {
	const want = "must be a status code by its name such as UNAVAILABLE, or by its number, 1 to 16"
	*to = cmp.Or(*to, fallback)
	if name, given := f.TextOrNumber(key, want); given {
		if c, ok := codename.Parse(name); ok {
			*to = c
		} else {
			f.Misread(f.Under(key), f.Get(key), want)
		}
	}
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
	{"normal", ShapeNormal, "mean", "deviation"},
	{"lognormal", ShapeLogNormal, "median", "p99"},
	{"bimodal", ShapeBimodal, "", ""},
}

// distribution reads a duration's distribution: "20ms", or an object with one shape.
func distribution(f *fields, key string, to **Distribution) {
	n := f.Get(key)
	if n == nil {
		return
	}
	var d Distribution
	if n.Kind != document.Object {
		f.Duration(key, &d.A, missing, 0, longestTime)
		*to = &d
		return
	}
	if len(n.Entries) != 1 {
		f.Wrong(key, `must be a time such as "20ms", or one of fixed, exponential, normal, lognormal and bimodal`)
	}
	known := false
	f.Object(key, func(in *fields) {
		for _, s := range shapes {
			if in.Has(s.key) {
				known, d.Shape = true, s.shape
				d.shapeKeys(in, s.key, s.a, s.b)
			}
		}
	})
	if !known {
		f.Skip(f.Under(key))
	}
	if *to = &d; d.Shape == ShapeBimodal && (d.Usual == nil || d.Slow == nil) {
		*to = nil
	}
}

// shapeKeys names the keys of a shape; a and b are those of its two times.
func (d *Distribution) shapeKeys(f *fields, shape, a, b string) {
	switch {
	case d.Shape == ShapeBimodal:
		f.Object(shape, func(f *fields) {
			f.Require("a bimodal time is {usual: 10ms, slow: 200ms, part: 0.2}", "usual", "slow", "part")
			distribution(f, "usual", &d.Usual)
			distribution(f, "slow", &d.Slow)
			f.Number("part", &d.Part, 0, 1, true)
		})
	case a == "":
		f.Duration(shape, &d.A, missing, 0, longestTime)
	default:
		f.Object(shape, func(f *fields) {
			f.Require("must be a time", a, b)
			f.Duration(a, &d.A, missing, 0, longestTime)
			f.Duration(b, &d.B, missing, 0, longestTime)
		})
		switch {
		case d.A < 0 || d.B < 0: // already reported
			d.A, d.B = 1, 1
		case d.Shape == ShapeLogNormal && (d.A <= 0 || d.A > d.B):
			f.Wrong(shape, "%s must be at least %s, which must be more than 0s", b, a)
		}
	}
}

func (p *Phase) phaseKeys(f *fields) {
	f.RequiredText("name", &p.Name)
	word(f, "kind", &p.Kind, "TROUBLE", "LEAD", "AFTER")
	f.Duration("length", &p.Length, 0, 10*time.Millisecond, mostLength)
	f.Require(`must be a time such as "10s"`, "length")
	f.Number("load", &p.Load, 1, mostTimes, false)
	objects(f, "faults", &p.Faults, (*Fault).faultKeys)
}

func (t *Fault) faultKeys(f *fields) {
	f.RequiredText("service", &t.Service)
	t.backends(f)
	f.Text("method", &t.Method)
	f.Bool("down", &t.Down)
	f.Bool("hang", &t.Hang)
	f.Number("flaky", &t.Flaky, 0, 1, true)
	f.Bool("atOnce", &t.AtOnce)
	if f.Has("slow") {
		var slow Slow
		f.Object("slow", func(f *fields) {
			f.Number("part", &slow.Part, 0, 1, true)
			distribution(f, "by", &slow.By)
			f.Require("must be there: the part of the requests that wait, and by how much longer: {part: 0.01, by: 1s}", "part", "by")
		})
		t.Slow = &slow
	}
	f.Number("slower", &t.Slower, 0, mostTimes, true)
	if f.Has("workers") {
		t.Workers = new(int)
		f.Int("workers", t.Workers, missing, 0, 1_000_000)
	}
	f.Bool("flush", &t.Flush)
	if t.Method != "" && (t.Workers != nil || t.Flush) {
		f.Wrong("method", "is for faults of requests; workers and flush are of a whole backend")
	}
	code(f, "code", &t.Code, codes.Unavailable)
	t.pushback(f)
	f.Later(func() {
		switch {
		case !f.Whole(f.path):
		case !t.Down && !t.Hang && t.Flaky == 0 && t.Slow == nil && t.Slower == 0 && t.Workers == nil && !t.Flush:
			f.Errorf(f.path, nil, "has no trouble; must have down, hang, flaky, slow, slower, workers or flush")
		case t.AtOnce && t.Flaky == 0:
			f.Wrong("atOnce", "is for the failures of flaky, which is missing")
		}
	})
}

// pushback reads a time, or "STOP".
func (t *Fault) pushback(f *fields) {
	const key, stop = "pushback", "STOP"
	n := f.Get(key)
	switch {
	case n == nil:
	case n.Text == stop:
		t.Pushback = new(time.Duration(-1))
	default:
		t.Pushback = new(time.Duration)
		f.Duration(key, t.Pushback, missing, 0, time.Hour)
	}
}

// backends reads the backends' numbers.
func (t *Fault) backends(f *fields) {
	const key = "backends"
	if n := f.Get(key); n != nil && n.Kind == document.List && len(n.Items) == 0 {
		f.Wrong(key, "must name at least one backend by its number, from 0; leave it out for all")
	}
	f.List(key, func(path string, n *document.Node) {
		b, err := strconv.Atoi(n.Text)
		if n.Kind != document.Number || err != nil || b < 0 || slices.Contains(t.Backends, b) {
			f.Misfit(path, n, "must be a backend by its number, from 0, each once")
			return
		}
		t.Backends = append(t.Backends, b)
	})
}
