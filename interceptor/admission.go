// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"slices"
)

// admissions returns a reading of each method with admission REFUSE that has had calls, ordered by target and
// method.
func (r *Retrier) admissions() []AdmissionState {
	var list []AdmissionState
	for s := range r.entries.each() {
		if gate := s.record.Gate(); gate != nil {
			state := gate.State()
			list = append(list, AdmissionState{Target: s.target, Method: s.name, Running: state.Running, Refused: state.Refused, WouldRefuse: state.WouldRefuse})
		}
	}
	slices.SortFunc(list, func(a, b AdmissionState) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Method, b.Method))
	})
	return list
}
