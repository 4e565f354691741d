// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"
)

// check finds what is wrong between the parts of a scenario, each of which is right by itself.
func (r *reader) check(s *Scenario, f *fields) {
	c := checker{reader: r, scenario: s, root: f}
	for _, part := range []struct {
		key string
		n   int
	}{{"services", len(s.Services)}, {"fleets", len(s.Fleets)}, {"phases", len(s.Phases)}} {
		if part.n == 0 {
			f.wrong(part.key, "must have at least one")
		}
	}
	c.names()
	c.phases()
	for i := range s.Services {
		for k := range s.Services[i].Calls {
			c.call(at("services", i)+"."+at("calls", k), s.Services[i].Name, &s.Services[i].Calls[k])
		}
	}
	for i := range s.Fleets {
		c.call(at("fleets", i)+".calls", s.Fleets[i].Name, &s.Fleets[i].Call)
	}
	c.variants()
	if len(r.problems) == 0 {
		c.circles()
	}
}

func at(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

type checker struct {
	*reader

	scenario *Scenario
	root     *fields
}

// names must tell apart whatever calls or is called, and variants.
func (c *checker) names() {
	seen := map[string]bool{}
	once := func(path, name string) {
		if seen[name] {
			c.at(path+".name", name, "stands twice; services and fleets need names of their own")
		}
		seen[name] = true
	}
	for i := range c.scenario.Services {
		once(at("services", i), c.scenario.Services[i].Name)
	}
	for i := range c.scenario.Fleets {
		once(at("fleets", i), c.scenario.Fleets[i].Name)
	}
	clear(seen)
	for i := range c.scenario.Variants {
		once(at("variants", i), c.scenario.Variants[i].Name)
	}
}

// at reports a field by its path.
func (c *checker) at(path, value, format string, args ...any) {
	c.add(find(c.root.at, path), path, value, format, args...)
}

// phases stand in an order: what leads in, the trouble, what comes after.
func (c *checker) phases() {
	order := map[Kind]int{Lead: 0, Trouble: 1, After: 2}
	last := 0
	for i, p := range c.scenario.Phases {
		path := at("phases", i)
		if order[p.Kind] < last {
			c.at(path+".kind", "", "must not stand here: LEAD comes first, then TROUBLE, then AFTER")
		}
		last = max(last, order[p.Kind])
		for k := range p.Faults {
			c.fault(path+"."+at("faults", k), &p.Faults[k])
		}
	}
	s := c.scenario
	if n := s.Length(); n > mostLength {
		c.at("phases", "", "last %v together; must be at most %v", n, mostLength)
	}
	switch n := s.Length() / s.Bucket; {
	case n < 1:
		c.at("bucket", s.Bucket.String(), "is longer than all phases together, %v", s.Length())
	case n > mostBuckets:
		c.at("bucket", s.Bucket.String(), "makes more than %d buckets; must be longer", mostBuckets)
	}
}

func (c *checker) fault(path string, f *Fault) {
	s := c.service(path+".service", f.Service)
	if s == nil {
		return
	}
	for _, b := range f.Backends {
		if b >= s.Backends {
			c.at(path+".backends", strconv.Itoa(b), "must be less than the %d backends of %s, counted from 0", s.Backends, s.Name)
		}
	}
	if f.Workers != nil && *f.Workers > s.Workers {
		c.at(path+".workers", strconv.Itoa(*f.Workers), "must be at most the %d workers of each backend of %s", s.Workers, s.Name)
	}
}

// service finds a service, or reports that there is none.
func (c *checker) service(path, name string) *Service {
	var names []string
	for i := range c.scenario.Services {
		s := &c.scenario.Services[i]
		if s.Name == name {
			return s
		}
		names = append(names, s.Name)
	}
	c.at(path, name, "no service has that name; must be %s", oneOf(names))
	return nil
}
