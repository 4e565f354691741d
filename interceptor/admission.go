// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/policy"
)

// admission returns the method's gate, and makes it if there is none.
func (r *record) admission(makes func() admitting.Gate) admitting.Gate {
	if r.admissionGate.Load() == nil {
		made := makes()
		r.admissionGate.CompareAndSwap(nil, &made)
	}
	return *r.admissionGate.Load()
}

// checkAdmission returns an error if the set turns admission on and the program does not import it.
func (r *rules) checkAdmission() error {
	wrong := r.set.Compiled().AdmissionAt
	if r.newGate != nil || len(wrong) == 0 {
		return nil
	}
	for i := range wrong {
		wrong[i].Message = admitting.NotImported
	}
	return &policy.Error{Diagnostics: wrong}
}

// admissionOf returns the gate that decides on the calls of an entry, or nil. A caller's own policy was not checked: it gets a warning if the
// program does not import admission.
func (r *Retrier) admissionOf(e *entry) admitting.Gate {
	switch {
	case !e.policy.Admission():
		return nil
	case e.rules.newGate == nil:
		r.warnOnce(&noAdmission, e.name, e.name)
		return nil
	case e.method == nil: // its name is too long
		return nil
	default:
		return e.admission(e.rules.newGate)
	}
}

// admissions returns a reading of each method with admission REFUSE that has had calls, ordered by target and method.
func (r *Retrier) admissions() []AdmissionState {
	var list []AdmissionState
	for _, m := range r.methods.All() {
		if gate := m.admissionGate.Load(); gate != nil {
			is := (*gate).State()
			list = append(list, AdmissionState{m.target, m.name, is.Running, is.Refused, is.WouldRefuse})
		}
	}
	slices.SortFunc(list, func(a, b AdmissionState) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Method, b.Method))
	})
	return list
}

// notifyWouldRefuse notifies observers that admission would have refused a call in mode ENFORCE.
func (c *call) notifyWouldRefuse() {
	if c.entry.mode == policy.ModeObserve && c.retrier.observers.Load().ofCalls {
		e := c.event(0, codes.ResourceExhausted, nil)
		e.Reason = policy.ReasonOverloaded
		c.retrier.notify(c.ctx, e, tellDecision)
	}
}
