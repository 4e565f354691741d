// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// knownFor returns the measurements of a call's method, if its policy needs them: to refuse calls, or to send extra attempts
// only while recent answers were fast. It returns none if the table of methods is full. Only calls in mode ENFORCE are
// refused. The measurements outlive the rules, so a reload keeps them.
func (r *Retrier) knownFor(of *rules, p *decision.Policy, cc *grpc.ClientConn, method string, o *callOptions, now time.Duration) (k methods.Known) {
	if !p.Refuses() && p.MaxAttempts() < 2 {
		return k
	}
	given, cached := target(cc), of.cachedMethod(p)
	known := cached.load(given, method)
	if known == nil {
		known = r.methods.Find(methods.Key{Target: r.targets.canonical(cc), Method: method}, o.static(), now)
		cached.store(given, method, known)
	}
	if known == nil {
		return k
	}
	return known.For(p, o.criticality, o.mode == policy.ModeEnforce, now)
}

// admissions returns a reading of each method with admission REFUSE or AUTO that has had calls, ordered by target and
// method.
func (r *Retrier) admissions() []inside.AdmissionState {
	var list []inside.AdmissionState
	for key, m := range r.methods.All() {
		if gate := m.Gate(); gate != nil {
			state := gate.State()
			list = append(list, inside.AdmissionState{Target: key.Target, Method: key.Method, Running: state.Running, Refused: state.Refused, WouldRefuse: state.WouldRefuse})
		}
	}
	slices.SortFunc(list, func(a, b inside.AdmissionState) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Method, b.Method))
	})
	return list
}
