// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/document"
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
		if !all.Written(call.path) { // a single value, without a list
			call.path = call.maker + ".calls"
		}
		all.checkCall(call.path, call.from, call.Call)
	}
	all.variants()
	all.reportNames()
	if c.ErrorCount() == 0 {
		all.circles()
		all.methods()
	}
}

type checker struct {
	*codec

	scenario *Scenario
	wrong    []*wrongName
}

// wrongName is a name that nothing has, for all places that use it: most likely the one mistake is where the name is given.
type wrongName struct {
	what    string // a service, a policy, an entry
	name    string
	path    string // of the first place
	message string
	more    int // places
}

// noteName notes a place with a name that nothing has.
func (c *checker) noteName(what, name, path, message string) {
	for _, noted := range c.wrong {
		if noted.what == what && noted.name == name {
			noted.more++
			return
		}
	}
	c.wrong = append(c.wrong, &wrongName{what: what, name: name, path: path, message: message})
}

// reportNames reports each of these names once.
func (c *checker) reportNames() {
	for _, noted := range c.wrong {
		if noted.more > 0 {
			noted.message += fmt.Sprintf(" (also in %d other places)", noted.more)
		}
		c.Errorf(noted.path, nil, "%s", noted.message)
	}
}

// names checks that the names of services, fleets and variants differ.
func (c *checker) names() {
	seen := map[string]bool{}
	differ := "services and fleets need different names"
	once := func(path, name string) {
		if seen[name] {
			c.Errorf(path+".name", name, "is given twice; %s", differ)
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
	differ = "two variants have it, and each needs its own"
	for i := range c.scenario.Variants {
		once(document.Item("variants", i), c.scenario.Variants[i].Name)
	}
}

// phases checks the order of phases: lead-in, trouble, then the time after it.
func (c *checker) phases() {
	order := map[Kind]int{KindLead: 0, KindTrouble: 1, KindAfter: 2}
	last := 0
	for i, p := range c.scenario.Phases {
		path := document.Item("phases", i)
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
	if f.Flush && s.Cache == nil {
		c.Errorf(path+".flush", nil, "%s has no cache", s.Name)
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
	if len(names) == 0 {
		return nil // which is reported
	}
	c.noteName("service", name, path, "no service has that name; must be "+document.OneOf(names))
	return nil
}

// checkCall checks that a call has a service, and that its policy has an entry for the method.
func (c *checker) checkCall(path, from string, call *Call) {
	c.service(path+".service", call.Service)
	c.follows(path+".policy", call.Policy, call)
	for i := range c.scenario.Variants {
		v, field := &c.scenario.Variants[i], document.Item("variants", i)
		if name := v.policyOf(from, call.Policy); name != call.Policy {
			at := field + ".policy"
			if _, named := v.Policies[from]; named {
				at = field + ".policies." + from
			}
			c.follows(at, name, call)
		}
	}
}

func (c *checker) follows(path, name string, call *Call) {
	switch {
	case name == "" || name == NoPolicy:
		return
	case c.scenario.Policies[name] == nil:
		c.noteName("policy", name, path, "no policy has that name; name its file under policies, or write "+NoPolicy+" for one attempt")
		return
	}
	p := c.scenario.setOf(name).Lookup(call.Method)
	switch {
	case call.Method == "" || p == nil:
		c.noteName("entry", name+" "+call.Method, path, fmt.Sprintf("has no entry for the method %q of the calls to %s; "+
			"set their method to one that it has", document.Shorten(call.Method), document.Shorten(call.Service)))
	case compiled.Of(p).Hedge != nil && compiled.Of(p).Hedge.Quantile > 0:
		c.noteName("quantile", name, path, "has a hedgingQuantile, which is not simulated; use a hedgingDelay")
	}
}

// variants checks that variants name existing fleets and services.
func (c *checker) variants() {
	if len(c.scenario.Services) == 0 || len(c.scenario.Fleets) == 0 {
		return // which is reported
	}
	for i, v := range c.scenario.Variants {
		for _, from := range slices.Sorted(maps.Keys(v.Policies)) {
			known := slices.ContainsFunc(c.scenario.Fleets, func(f Fleet) bool { return f.Name == from }) ||
				slices.ContainsFunc(c.scenario.Services, func(s Service) bool { return s.Name == from })
			if !known {
				c.noteName("service", from, document.Item("variants", i)+".policies."+from, "no fleet and no service has that name")
			}
		}
	}
}

// methods reports faults of methods that no call has.
func (c *checker) methods() {
	for i, p := range c.scenario.Phases {
		for k, f := range p.Faults {
			called := slices.ContainsFunc(c.scenario.calls(), func(m made) bool { return m.Service == f.Service && m.Method == f.Method })
			if f.Method != "" && !called {
				field := document.Item("phases", i) + "." + document.Item("faults", k) + ".method"
				c.Errorf(field, f.Method, "no call to %s has that method", f.Service)
			}
		}
	}
}

// circles reports circular calls: such a request would never end.
func (c *checker) circles() {
	done := map[string]bool{} // false: its calls are being followed
	var circular func(name string) bool
	circular = func(name string) bool {
		if ended, seen := done[name]; seen {
			return !ended
		}
		done[name] = false
		for _, call := range c.scenario.service(name).Calls {
			if circular(call.Service) {
				return true
			}
		}
		done[name] = true
		return false
	}
	for i := range c.scenario.Services {
		if name := c.scenario.Services[i].Name; circular(name) {
			c.Errorf(document.Item("services", i)+".calls", nil, "lead back to %s; calls must not go in circles", name)
			return
		}
	}
}
