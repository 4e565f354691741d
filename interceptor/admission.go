// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"slices"

	"github.com/stagger-go/stagger/internal/admission"
)

// admissions returns a reading of each method with admission REFUSE that has had calls, ordered by target and
// method.
func (r *Retrier) admissions() []admission.Reading {
	var list []admission.Reading
	for s := range r.entries.each() {
		if gate := s.record.Gate(); gate != nil {
			list = append(list, admission.Reading{Target: s.target, Method: s.name, State: gate.State()})
		}
	}
	slices.SortFunc(list, func(a, b admission.Reading) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Method, b.Method))
	})
	return list
}
