// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
)

// call must lead to a service, by a policy that has something to say of the method.
func (c *checker) call(path, from string, call *Call) {
	c.service(path+".service", call.Service)
	c.follows(path+".policy", call.Policy, call)
	for i, v := range c.scenario.Variants {
		if name := v.policyOf(from, call.Policy); name != call.Policy {
			c.follows(at("variants", i), name, call)
		}
	}
}

func (c *checker) follows(path, name string, call *Call) {
	set := c.scenario.Policies[name]
	switch {
	case name == "" || name == NoPolicy:
		return
	case set == nil:
		c.at(path, name, "no policy has that name; name its file under policies, or write %s for one attempt", NoPolicy)
		return
	}
	p := set.Lookup(call.Method)
	switch {
	case call.Method == "" || p == nil:
		c.at(path, name, "has no entry for the method %q of the calls to %s; set their method to one that it has", call.Method, call.Service)
	case p.Hedge() != nil && p.Hedge().Quantile != nil:
		c.at(path, name, "has a hedgingQuantile, which is not simulated; use a hedgingDelay")
	}
}

// variants must name who is there.
func (c *checker) variants() {
	for i, v := range c.scenario.Variants {
		for from := range v.Policies {
			known := slices.ContainsFunc(c.scenario.Fleets, func(f Fleet) bool { return f.Name == from }) ||
				slices.ContainsFunc(c.scenario.Services, func(s Service) bool { return s.Name == from })
			if !known {
				c.at(at("variants", i)+".policies."+from, "", "no fleet and no service has that name")
			}
		}
	}
}

// circles would never end: a request would make calls that lead to itself.
func (c *checker) circles() {
	const (
		open = iota + 1
		done
	)
	state := map[string]int{}
	var visit func(name string) bool
	visit = func(name string) bool {
		if state[name] != 0 {
			return state[name] == open
		}
		state[name] = open
		s := c.service("", name)
		for i := range s.Calls {
			if visit(s.Calls[i].Service) {
				return true
			}
		}
		state[name] = done
		return false
	}
	for i := range c.scenario.Services {
		if visit(c.scenario.Services[i].Name) {
			c.at(at("services", i)+".calls", "", "lead back to %s; calls must not go in circles", c.scenario.Services[i].Name)
			return
		}
	}
}
