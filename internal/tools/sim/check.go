// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/document"
)

// checkScenario reports parts of a scenario that are valid one by one, but not together.
func (c *codec) checkScenario(s *Scenario) {
	all := checker{codec: c, scenario: s}
	for _, part := range []struct {
		key string
		n   int
	}{{"services", len(s.Services)}, {"fleets", len(s.Fleets)}, {"phases", len(s.Phases)}} {
		if part.n == 0 {
			all.Errorf(part.key, nil, "must have at least one")
		}
	}
	if n := len(s.Variants); n > mostVariants {
		all.Errorf("variants", nil, "are %d; must be at most %d", n, mostVariants)
		return
	}
	all.names()
	all.phases()
	for _, call := range s.calls() {
		if !all.Written(call.path) { // a single value, without
			call.path = call.maker + ".calls"
		}
		all.checkCall(call.path, call.from, call.Call)
	}
	all.variants()
	if c.ErrorCount() == 0 {
		all.circles()
	}
	if c.ErrorCount() == 0 {
		all.bounds()
	}
}

// bounds reports scenarios that would exhaust the memory, or run for years.
func (c *checker) bounds() {
	variants := c.scenario.Variants
	if len(variants) == 0 {
		variants = []Variant{{}}
	}
	for i := range variants {
		clients := ""
		if variants[i].Clients > 0 {
			clients = document.Item("variants", i) + ".clients"
		}
		if e := c.scenario.excess(&variants[i], clients); e != nil {
			for !c.Written(e.field) && strings.Contains(e.field, ".") { // absent from the file
				e.field = e.field[:strings.LastIndex(e.field, ".")]
			}
			c.Errorf(e.field, nil, "%s", e.message)
			return
		}
	}
}

type checker struct {
	*codec

	scenario *Scenario
}

// names checks that the names of services, fleets and variants differ.
func (c *checker) names() {
	seen := map[string]bool{}
	once := func(path, name string) {
		if seen[name] {
			c.Errorf(path+".name", name, "is given twice; services and fleets need different names")
		}
		seen[name] = true
	}
	for i := range c.scenario.Services {
		once(document.Item("services", i), c.scenario.Services[i].Name)
	}
	for i := range c.scenario.Fleets {
		once(document.Item("fleets", i), c.scenario.Fleets[i].Name)
	}
	clear(seen)
	for i := range c.scenario.Variants {
		once(document.Item("variants", i), c.scenario.Variants[i].Name)
	}
}

// phases checks the order of phases: lead-in, trouble, then the time after it.
func (c *checker) phases() {
	order := map[Kind]int{KindLead: 0, KindTrouble: 1, KindAfter: 2}
	last := 0
	for i, p := range c.scenario.Phases {
		path := c.phasePaths[i]
		if order[p.Kind] < last {
			c.Errorf(path, nil, "is in the wrong place: LEAD comes first, then TROUBLE, then AFTER")
		}
		last = max(last, order[p.Kind])
		for k := range p.Faults {
			c.fault(path+"."+document.Item("faults", k), &p.Faults[k])
		}
	}
	s := c.scenario
	if n := s.Length(); n > mostLength {
		c.Errorf("phases", nil, "last %v together; must be at most %v", n, mostLength)
	}
	switch n := s.Length() / s.Bucket; {
	case len(s.Phases) == 0:
	case n < 1 && !c.Written("bucket"):
		c.Errorf("phases", nil, "last %v together; must be at least as long as a bucket, %v", s.Length(), s.Bucket)
	case n < 1:
		c.Errorf("bucket", s.Bucket, "is longer than all phases together, %v", s.Length())
	case n > mostBuckets:
		c.Errorf("bucket", s.Bucket, "makes more than %d buckets; must be longer", mostBuckets)
	}
}

func (c *checker) fault(path string, f *Fault) {
	s := c.service(path+".service", f.Service)
	if s == nil {
		return
	}
	for _, b := range f.Backends {
		if b >= s.Backends {
			c.Errorf(path+".backends", b, "must be less than the %d backends of %s, counted from 0", s.Backends, s.Name)
		}
	}
	if f.Workers != nil && *f.Workers > s.Workers {
		c.Errorf(path+".workers", *f.Workers, "must be at most the %d workers of each backend of %s", s.Workers, s.Name)
	}
}

// service returns a service by its name. It reports an unknown name.
func (c *checker) service(path, name string) *Service {
	if s := c.scenario.service(name); s != nil {
		return s
	}
	var names []string
	for i := range c.scenario.Services {
		names = append(names, c.scenario.Services[i].Name)
	}
	c.Errorf(path, name, "no service has that name; must be %s", document.OneOf(names))
	return nil
}

// checkCall checks that a call has a service, and that its policy has an entry for the method.
func (c *checker) checkCall(path, from string, call *Call) {
	c.service(path+".service", call.Service)
	c.follows(path+".policy", call.Policy, &Variant{}, call)
	for i := range c.scenario.Variants {
		v, field := &c.scenario.Variants[i], document.Item("variants", i)
		switch name := v.policyOf(from, call.Policy); {
		case name == call.Policy && v.Set == "":
		case name == call.Policy:
			c.follows(field+".set", name, v, call)
		default:
			at := field + ".policy"
			if _, own := v.Policies[from]; own {
				at = field + ".policies." + from
			}
			c.follows(at, name, v, call)
		}
	}
}

func (c *checker) follows(path, name string, v *Variant, call *Call) {
	switch {
	case name == "" || name == NoPolicy:
		return
	case c.scenario.Policies[name] == nil:
		c.Errorf(path, name, "no policy has that name; name its file under policies, or write %s for one attempt", NoPolicy)
		c.Skip(path) // for other calls
		return
	}
	set, err := c.scenario.setOf(v, name)
	if err != nil {
		c.changeIsWrong(v, err)
		return
	}
	p := set.Lookup(call.Method)
	switch {
	case call.Method == "" || p == nil:
		c.Errorf(path, name, "has no entry for the method %q of the calls to %s; set their method to one that it has", call.Method, call.Service)
	case p.Hedge() != nil && p.Hedge().Quantile > 0:
		c.Errorf(path, name, "has a hedgingQuantile, which is not simulated; use a hedgingDelay")
	}
}

// changeIsWrong reports errors in the policies that a variant's set produces.
func (c *checker) changeIsWrong(v *Variant, err error) {
	i := slices.IndexFunc(c.scenario.Variants, func(other Variant) bool { return other.Name == v.Name })
	base := document.Item("variants", i) + ".set"
	if c.Skipped(base) {
		return
	}
	c.reportPolicy(err, base, func(field string) string {
		if entry, inside, ok := strings.Cut(field, "."); ok && strings.HasPrefix(entry, "methodConfig[") {
			return base + "." + inside
		}
		return ""
	})
	c.Skip(base) // for other calls
}

// variants checks that variants name existing fleets and services.
func (c *checker) variants() {
	for i, v := range c.scenario.Variants {
		for from := range v.Policies {
			known := slices.ContainsFunc(c.scenario.Fleets, func(f Fleet) bool { return f.Name == from }) ||
				slices.ContainsFunc(c.scenario.Services, func(s Service) bool { return s.Name == from })
			if !known {
				c.Errorf(document.Item("variants", i)+".policies."+from, nil, "no fleet and no service has that name")
			}
		}
	}
}

// circles reports circular calls: such a request would never end.
func (c *checker) circles() {
	b := bounds{Scenario: c.scenario, fan: map[string]float64{}, plain: true}
	for i := range c.scenario.Services {
		if name := c.scenario.Services[i].Name; math.IsInf(b.below("", &Call{Service: name}), 1) {
			c.Errorf(document.Item("services", i)+".calls", nil, "lead back to %s; calls must not go in circles", name)
			return
		}
	}
}
