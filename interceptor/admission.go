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

// knownFor returns what is known of a call's method, if its policy asks for that: it refuses calls, or sends other attempts
// while the last answers were fast. There is nothing if too many methods are known already. Calls that no mode enforces a policy for are
// not refused. What is known outlives the rules: a reload forgets nothing of a service's load.
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
	return known.For(p, cmp.Or(o.criticality, p.Criticality()), o.mode == policy.ModeEnforce, now)
}

// admissions reads what admission knows of each method that has it (admission: REFUSE or AUTO), and that calls have used so
// far, in the order of target and method.
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
