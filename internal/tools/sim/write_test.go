// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"
)

func written(t reporter, s *Scenario) string {
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every key is written, and read as the same value. Policies are compared by their texts: two that were read are never
// equal.
func TestWrite(t *testing.T) {
	t.Parallel()
	s, err := parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	text := written(t, s)
	again, err := parse(text)
	if err != nil {
		t.Fatalf("%s\nis not read: %v", text, err)
	}
	sameScenario(t, again, s)
	if strings.Count(text, "\n") > 60 || !strings.Contains(text, "own: {methodConfig:") && !strings.Contains(text, "own:\n") {
		t.Errorf("want a short file with the policy in it:\n%s", text)
	}
}

type reporter interface {
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

func sameScenario(t reporter, got, want *Scenario) {
	texts := func(s *Scenario) map[string]string {
		list := map[string]string{}
		for name, p := range s.Policies {
			list[name] = p.File + p.Text
		}
		return list
	}
	if g, w := texts(got), texts(want); !reflect.DeepEqual(g, w) {
		t.Errorf("policies %v; want %v", g, w)
	}
	a, b := *got, *want
	a.Policies, b.Policies = nil, nil
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got\n%+v\nwant\n%+v", a, b)
	}
}

// Default values are not written.
func TestWriteDefaults(t *testing.T) {
	t.Parallel()
	s := &Scenario{
		Title:    "a: small one",
		Services: []Service{{Name: "shop", Backends: 1, Workers: 1, Guard: true, Time: &Distribution{A: 20 * time.Millisecond}, Refuse: codes.ResourceExhausted}},
		Fleets:   []Fleet{{Name: "users", Rate: 10, Calls: []Call{{Service: "shop", Deadline: time.Second}}}},
		Phases:   []Phase{{Name: "all", Length: time.Second, Load: 1, Faults: []Fault{{Service: "shop", Slower: 2}}}},
	}
	const want = `title: "a: small one"
services: [{name: shop, time: 20ms}]
fleets: [{name: users, rate: 10, calls: {service: shop, deadline: 1s}}]
phases: [{name: all, length: 1s, faults: [{service: shop, slower: 2}]}]
`
	if got := written(t, s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.Policies = map[string]*Policy{"lost": {}}
	if err := s.Write(new(strings.Builder)); err == nil || !strings.Contains(err.Error(), `policy "lost" cannot be written`) {
		t.Errorf("error %v", err)
	}
}

// A written scenario is read as the same scenario.
func TestWriteIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := randomScenario(t)
		text := written(t, s)
		again, err := parse(text)
		if err != nil {
			t.Fatalf("%s\nis not read: %v", text, err)
		}
		sameScenario(t, again, s)
	})
}

func randomScenario(t *rapid.T) *Scenario {
	d := draw{t}
	s := &Scenario{Title: d.text("title"), About: d.text("about"), Seed: uint64(d.count(1, 1<<53)), Policies: map[string]*Policy{}, Recovery: defaultRecovery}
	if d.maybe() {
		s.Recovery = Recovery{d.float(0.01, 1), d.time(25*time.Millisecond, time.Hour)}
	}
	if d.maybe() {
		p, err := NewPolicy(`{"methodConfig":[{"name":[{"service":"a.B","method":"C"}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"0.1s","maxBackoff":"1s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE"]}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		s.Policies["own"] = p
	}
	for i := range d.count(1, 3) {
		s.Services = append(s.Services, Service{
			Name: fmt.Sprint("s", i), Backends: d.count(1, 10), Workers: d.count(1, 9), Queue: d.count(0, 100), Order: Order(d.count(0, 1)),
			Time: d.distribution(2, time.Millisecond), Refuse: codes.Code(d.count(1, 16)), Abandoned: Abandoned(d.count(0, 1)), Guard: d.maybe(), Reports: d.maybe(),
		})
		if i > 0 && d.maybe() {
			c := d.call(s, "s0")
			c.Share, c.Clients = 0, d.count(0, 5)
			s.Services[i].Calls = []Call{c}
		}
	}
	for i := range d.count(1, 3) {
		f := Fleet{Name: fmt.Sprint("f", i), Clients: d.count(1, 100)}
		if d.maybe() {
			f.Rate = d.float(0.001, 1000)
		} else {
			f.Think = d.distribution(2, time.Millisecond)
		}
		for range d.count(1, 3) {
			f.Calls = append(f.Calls, d.call(s, s.Services[0].Name))
		}
		s.Fleets = append(s.Fleets, f)
	}
	for _, kind := range []Kind{KindLead, KindTrouble, KindAfter} {
		for range d.count(0, 3) {
			p := d.phase(kind)
			for range d.count(1, 4) {
				s.Phases = append(s.Phases, p)
			}
		}
	}
	if len(s.Phases) == 0 {
		s.Phases = []Phase{d.phase(KindTrouble)}
	}
	s.Bucket = s.bucket()
	if d.maybe() {
		s.Bucket = max(s.Length()/time.Duration(d.count(1, 1000)), time.Millisecond)
	}
	for i := range d.count(0, 2) {
		v := Variant{Name: fmt.Sprint("v", i), Clients: d.count(0, 3), All: rapid.SampledFrom([]string{"", NoPolicy}).Draw(t, "all")}
		if d.maybe() {
			v.Policies = map[string]string{"f0": NoPolicy}
		}
		if d.maybe() {
			v.Guard = new(d.maybe())
			v.Blind = d.maybe()
		}
		if d.maybe() {
			v.Set = `{"timeout":"1.5s","retryPolicy":{"maxAttempts":2,"jitter":null}}`
		}
		s.Variants = append(s.Variants, v)
	}
	return s
}

// draw draws the parts of scenarios.
type draw struct{ *rapid.T }

func (d draw) maybe() bool             { return rapid.Bool().Draw(d.T, "maybe") }
func (d draw) count(low, high int) int { return rapid.IntRange(low, high).Draw(d.T, "count") }
func (d draw) text(what string) string {
	return rapid.StringMatching(`[a-z]{1,5}[ -~é:]{0,20}`).Draw(d.T, what)
}

func (d draw) float(low, high float64) float64 {
	return rapid.Float64Range(low, high).Draw(d.T, "number")
}

func (d draw) time(low, high time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(d.T, "time"))
}

func (d draw) distribution(depth int, low time.Duration) *Distribution {
	shape := Shape(d.count(0, 4+min(depth, 1)))
	r := &Distribution{Shape: shape}
	if shape == ShapeBimodal {
		r.Part, r.Usual, r.Slow = d.float(0.001, 1), d.distribution(depth-1, low), d.distribution(depth-1, low)
		return r
	}
	times := []time.Duration{d.time(low, time.Hour), d.time(low, time.Hour)}
	slices.Sort(times)
	r.A = times[0]
	if shape != ShapeFixed && shape != ShapeExponential {
		r.B = times[1]
	}
	return r
}

func (d draw) call(s *Scenario, service string) Call {
	c := Call{
		Service: service, Deadline: d.time(time.Millisecond, time.Hour), Share: d.float(0.01, 10), Work: d.float(0.01, 10),
		Connections: d.count(1, 3), Attempts: d.count(1, 7), Loss: d.float(0, 1),
	}
	if s.Policies["own"] != nil && d.maybe() {
		c.Policy, c.Method = "own", "/a.B/C"
	}
	if d.maybe() {
		c.Delay = d.distribution(1, 0)
		if c.Delay.Shape == ShapeLogNormal || c.Delay.Shape == ShapeBimodal {
			c.Delay = nil // their times are more than 0
		}
	}
	return c
}

func (d draw) phase(kind Kind) Phase {
	p := Phase{Name: d.text("phase"), Kind: kind, Length: d.time(200*time.Millisecond, time.Minute), Load: d.float(0, 5)}
	if d.maybe() {
		p.LoadTo = new(d.float(0, 5))
	}
	for range d.count(0, 2) {
		f := Fault{Service: "s0", Down: d.maybe(), Hang: d.maybe(), Flaky: d.float(0, 1), Slower: d.float(0.5, 3), Code: codes.Code(d.count(1, 16))}
		if d.maybe() {
			f.Backends = []int{0}
		}
		if d.maybe() {
			f.Slow = &Slow{Part: d.float(0.001, 1), By: d.distribution(1, 1)}
		}
		if d.maybe() {
			f.Workers = new(d.count(0, 1))
		}
		if d.maybe() {
			f.Pushback = new(max(d.time(-1, time.Hour), -1))
		}
		p.Faults = append(p.Faults, f)
	}
	return p
}
