// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Admission is what becomes of a call that cannot be answered before its deadline, as far as the last answers tell.
// The zero value means [AdmissionNone].
type Admission uint8

// The kinds of admission.
const (
	AdmissionNone   Admission = iota + 1 // it is made
	AdmissionRefuse                      // it is refused before its first attempt, and extra attempts are not sent
	AdmissionAuto                        // the same of sheddable calls, and of all where servers report utilization or refuse what they have not worked on
)

// String spells the kind as a policy file does.
func (a Admission) String() string { return spelling(policyv1.Admission(cmp.Or(a, AdmissionNone))) }

// Criticality is which calls are refused first when not all can be answered in time. The zero value means
// [CriticalityDefault].
type Criticality uint8

// The criticalities, those that are refused first before the others.
const (
	CriticalitySheddable Criticality = iota + 1 // from half of the attempts on that can be answered in time
	CriticalityDefault                          // when as many attempts run as can be answered in time
	CriticalityCritical                         // when as many of critical calls run; other calls do not count
)

// String spells the criticality as a policy file does.
func (c Criticality) String() string {
	return spelling(policyv1.Criticality(cmp.Or(c, CriticalityDefault)))
}
