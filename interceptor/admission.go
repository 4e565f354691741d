// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/admission"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// admissionFor returns what admits a call; nil if its policy refuses none, or so many methods have a gate already
// that this one gets none. Calls that no mode enforces a policy for are counted only. Gates outlive the rules: a reload
// forgets nothing of a service's load.
func (r *Retrier) admissionFor(of *rules, p *policy.Policy, cc *grpc.ClientConn, method string, o *callOptions) *admission.Class {
	if !p.Refuses() {
		return nil
	}
	given, cached := target(cc), of.cachedGate(p)
	gate := cached.load(given, method)
	if gate == nil {
		gate = r.gates.find(methodKey{r.targets.canonical(cc), method}, admission.New)
		cached.store(given, method, gate)
	}
	switch {
	case gate == nil:
		return nil
	case o.mode != policy.ModeEnforce:
		return gate.Counts()
	default:
		return gate.Class(cmp.Or(o.criticality, p.Criticality()))
	}
}

// timeLeft is how much time a call has.
func timeLeft(ctx context.Context) time.Duration {
	deadline, limited := ctx.Deadline()
	if !limited {
		return attempts.Never
	}
	return time.Until(deadline) // the budgets' clock may count from a later time: in a synctest bubble it does
}

// AdmissionState is a reading of what admission knows of a method.
type AdmissionState struct {
	Target  string
	Method  string
	Running int    // attempts that have not been answered
	Refused uint64 // calls that were not made, so far
}

// Admission reads what admission knows of each method that has it (admission: REFUSE), and that calls have used so
// far, in the order of target and method. It is safe for concurrent use.
func (r *Retrier) Admission() []AdmissionState {
	gates := r.gates.all()
	list := make([]AdmissionState, 0, len(gates))
	for key, gate := range gates {
		state := gate.State()
		list = append(list, AdmissionState{Target: key.target, Method: key.method, Running: state.Running, Refused: state.Refused})
	}
	slices.SortFunc(list, func(a, b AdmissionState) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Method, b.Method))
	})
	return list
}
