// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/policy"
)

// Switch is a mode set by hand at run time, for all calls of a Retrier or for those of a service.
type Switch struct {
	Service string      // such as "acme.orders.v1.OrderService"; "" for all calls
	Mode    policy.Mode // "" is [policy.ModeEnforce]
	Percent float64     // of calls with the mode, up to 100; the others are OFF. 0 means 100
}

// String returns text such as "OFF", or "ENFORCE for 5 %", without the service.
func (s Switch) String() string {
	if s.Percent >= 100 {
		return string(s.Mode)
	}
	return string(s.Mode) + " for " + strconv.FormatFloat(s.Percent, 'f', -1, 64) + " %"
}

// maxSwitches bounds the services with their own mode.
const maxSwitches = 1000

// Switch sets the mode of all calls, or of a service's, in addition to the policy file's: the strictest of all modes
// applies, and the smallest of their percentages. Reloads don't change it. It applies until it is set again; the zero Switch
// undoes it. It returns an error if to is invalid. It is safe for concurrent use.
//
//	retrier.Switch(interceptor.Switch{Mode: policy.ModeOff}) // at 3 a.m.
//
// A stricter mode applies from the next decision on. With [policy.ModeOff], calls that wait for their next attempt end at
// once, with their last error and [policy.ReasonModeOff]; running attempts go on. With [policy.ModeObserve],
// waiting calls that began in mode ENFORCE end in the same way. A laxer mode and a percentage apply only to calls that
// begin later.
func (r *Retrier) Switch(to Switch) error {
	to.Mode, to.Percent = cmp.Or(to.Mode, policy.ModeEnforce), cmp.Or(to.Percent, 100)
	if err := to.check(); err != nil {
		return err
	}
	for {
		before := r.switches.Load()
		after, from, err := before.with(to)
		if err != nil {
			return err
		}
		if !r.switches.CompareAndSwap(before, after) {
			continue
		}
		r.waits.recheck()
		if from != to {
			r.notifyMode(from, to)
		}
		return nil
	}
}

func (s Switch) check() error {
	switch {
	case s.Mode != policy.ModeEnforce && s.Mode != policy.ModeObserve && s.Mode != policy.ModeOff:
		return fmt.Errorf("interceptor: mode %.100q: must be ENFORCE, OBSERVE or OFF", s.Mode)
	case !(s.Percent >= 0 && s.Percent <= 100): // false for NaN
		return fmt.Errorf("interceptor: percent %v: must be 0 to 100, and 0 is 100; for no calls set policy.ModeOff", s.Percent)
	case strings.ContainsAny(s.Service, "/* \t\r\n"):
		return fmt.Errorf("interceptor: service %q: must be a full name such as acme.orders.v1.OrderService; for all calls leave it out", s.Service)
	}
	return nil
}

// switches are the modes set by hand. They are immutable: changes replace them.
type switches struct {
	all      Switch
	services map[string]Switch // those with another mode than ENFORCE
}

// list returns the switch of all calls, then those of services, ordered by name.
func (s *switches) list() []Switch {
	return slices.Concat([]Switch{s.all}, slices.SortedFunc(maps.Values(s.services), func(a, b Switch) int {
		return cmp.Compare(a.Service, b.Service)
	}))
}

// enforced returns the default switch.
func enforced(service string) Switch { return Switch{service, policy.ModeEnforce, 100} }

// with returns a copy of the switches with one changed, and its old value.
func (s *switches) with(to Switch) (after *switches, from Switch, err error) {
	if to.Service == "" {
		return &switches{to, s.services}, s.all, nil
	}
	from, known := s.services[to.Service]
	if !known {
		from = enforced(to.Service)
	}
	after = &switches{s.all, map[string]Switch{}}
	maps.Copy(after.services, s.services)
	after.services[to.Service] = to
	if to == enforced(to.Service) {
		delete(after.services, to.Service)
	}
	if len(after.services) > maxSwitches {
		return nil, from, errors.New("interceptor: " + strconv.Itoa(maxSwitches) + " services have modes of their own; set some to ENFORCE and 100 percent first")
	}
	return after, from, nil
}

// modeFor returns the mode set by hand for a method's calls, and its percentage.
func (s *switches) modeFor(method string) (policy.Mode, float64) {
	if len(s.services) == 0 {
		return s.all.Mode, s.all.Percent
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	own, known := s.services[service]
	if !known {
		own = enforced("")
	}
	return max(s.all.Mode, own.Mode), min(s.all.Percent, own.Percent)
}
