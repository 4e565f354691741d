// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// The kinds of this package have the numbers of the schema's enums, and take their names from there.

// spelling is how a policy file spells a value; "INVALID" if it cannot.
func spelling(e protoreflect.Enum) string {
	if name := document.EnumName(e); name != "" {
		return name
	}
	return "INVALID"
}

// checkEnum refuses a value that the schema does not have. 0 is for the default.
func checkEnum(report *document.Report, field string, e protoreflect.Enum) {
	if e.Number() != 0 && document.EnumName(e) == "" {
		report.Errorf(field, e.Number(), "must be %s", document.OneOf(document.EnumNames(e.Descriptor())))
	}
}

// enum takes a value of the schema for the one of the same number. Descriptors may hold numbers that the schema
// does not have: the checks refuse them.
func enum[T ~uint8, P ~int32](p P) T {
	if p < 0 || p > math.MaxUint8 {
		return math.MaxUint8
	}
	return T(p)
}

// Permission is whether a policy allows something. The zero value leaves it to the [Config], and there means [Allow].
type Permission uint8

// The permissions.
const (
	Allow Permission = iota + 1
	Deny
)

// String spells the permission as a policy file does.
func (p Permission) String() string {
	return spelling(policyv1.TransparentRetry(cmp.Or(p, Allow)))
}

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
