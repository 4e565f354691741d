// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// know finds the measurements of the call's method, if its policy, which may be one of these rules, needs them: to refuse
// calls, or to send extra attempts only while recent answers were fast. There are none if the table of methods is full, or the name too long to be kept. Only
// calls in mode ENFORCE are refused. The measurements outlive the rules, so a reload keeps them.
func (c *call) know(of *rules, now time.Duration) {
	p, o := c.policy, &c.options
	if !p.Refuses() && p.MaxAttempts() < 2 || c.name == longName {
		return
	}
	given, cached := target(c.cc), of.cachedMethod(p)
	known := cached.load(given, c.name)
	if known == nil {
		known = c.retrier.methods.Find(methods.Key{Target: c.target(), Method: c.name}, o.static(), now)
		cached.store(given, c.name, known)
	}
	if known != nil {
		c.known = known.For(p, o.criticality, o.mode == policy.ModeEnforce, now)
	}
}

// admissions returns a reading of each method with admission REFUSE that has had calls, ordered by target and
// method.
func (r *Retrier) admissions() []AdmissionState {
	var list []AdmissionState
	for key, m := range r.methods.All() {
		if gate := m.Gate(); gate != nil {
			state := gate.State()
			list = append(list, AdmissionState{Target: key.Target, Method: key.Method, Running: state.Running, Refused: state.Refused, WouldRefuse: state.WouldRefuse})
		}
	}
	slices.SortFunc(list, func(a, b AdmissionState) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Method, b.Method))
	})
	return list
}
