// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// ModeSwitch is a mode set by hand at run time, for all calls of a Retrier or for those of a service.
type ModeSwitch struct {
	Service string      // such as "acme.orders.v1.OrderService"; "" for all calls
	Mode    policy.Mode // "" is [policy.ModeEnforce]
	By      string      // who sets it, for logs; may be empty
}

// SetMode sets the mode of all calls, or of a service's, in addition to the policy file's: the strictest of all modes applies. Reloads
// don't change it. It applies until it is set again; the zero ModeSwitch undoes it. It returns an error if to is invalid, or if the service
// occurs in no entry, descriptor or call so far. It is safe for concurrent use.
//
//	retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}) // at 3 a.m.
//
// A stricter mode applies from the next decision on. With [policy.ModeOff], calls that wait for their next attempt end at once, with their
// last error and [policy.ReasonModeOff]. Running attempts continue. With [policy.ModeObserve], waiting calls that began in mode ENFORCE end
// in the same way. A less strict mode affects new calls only.
func (r *Retrier) SetMode(to ModeSwitch) error {
	to.Mode = cmp.Or(to.Mode, policy.ModeEnforce)
	if err := to.check(); err != nil {
		return err
	}
	if r == nil || r.switches.Load() == nil {
		return errNotMade
	}
	if to.Service != "" && to.Mode != policy.ModeEnforce && !r.knowsService(to.Service) {
		return fmt.Errorf("interceptor: service %q: no policy entry, descriptor or call so far has it", to.Service)
	}
	for {
		before := r.switches.Load()
		after, from := before.with(to)
		if !r.switches.CompareAndSwap(before, after) {
			continue
		}
		r.generation.Add(1)
		r.waits.recheck()
		if from.Mode != to.Mode {
			r.notifyMode(from, to)
		}
		return nil
	}
}

// knowsService reports whether a policy entry, a descriptor or a call so far has the service.
func (r *Retrier) knowsService(service string) bool {
	of := func(name string) bool { return strings.HasPrefix(name, "/"+service+"/") }
	for _, m := range r.methods.All() {
		if of(m.name) {
			return true
		}
	}
	return r.described(service) || r.made() &&
		slices.ContainsFunc(r.rules.Load().set.Compiled().Methods, func(m spec.MethodConfig) bool { return slices.ContainsFunc(m.Names, of) })
}

func (s ModeSwitch) check() error {
	switch {
	case s.Mode != policy.ModeEnforce && s.Mode != policy.ModeObserve && s.Mode != policy.ModeOff:
		return fmt.Errorf("interceptor: mode %.100q: must be ENFORCE, OBSERVE or OFF", s.Mode)
	case strings.ContainsAny(s.Service, "/* \t\r\n"):
		return fmt.Errorf("interceptor: service %q: must be a full name such as acme.orders.v1.OrderService; for all calls leave it out", s.Service)
	}
	return nil
}

// switches are the modes set by hand. They are immutable: changes replace them.
type switches struct {
	all      ModeSwitch
	services map[string]ModeSwitch // those with another mode than ENFORCE
}

// list returns the switch of all calls, then those of services, ordered by name.
func (s *switches) list() []ModeSwitch {
	return slices.Concat([]ModeSwitch{s.all}, slices.SortedFunc(maps.Values(s.services), func(a, b ModeSwitch) int {
		return cmp.Compare(a.Service, b.Service)
	}))
}

// enforced returns the default switch.
func enforced(service string) ModeSwitch {
	return ModeSwitch{Service: service, Mode: policy.ModeEnforce}
}

// with returns a copy of the switches with one changed, and its old value.
func (s *switches) with(to ModeSwitch) (after *switches, from ModeSwitch) {
	if to.Service == "" {
		return &switches{to, s.services}, s.all
	}
	from, known := s.services[to.Service]
	if !known {
		from = enforced(to.Service)
	}
	after = &switches{s.all, map[string]ModeSwitch{}}
	maps.Copy(after.services, s.services)
	after.services[to.Service] = to
	if to.Mode == policy.ModeEnforce {
		delete(after.services, to.Service)
	}
	return after, from
}

// modeFor returns the mode set by hand for a method's calls.
func (s *switches) modeFor(method string) policy.Mode {
	if len(s.services) == 0 {
		return s.all.Mode
	}
	return policy.StrictestMode(s.all.Mode, s.services[serviceOf(method)].Mode)
}
