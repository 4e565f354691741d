// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/document"
)

// The constants have the names of the schema's enum values in a policy file; TestWords compares them. "" means the default.

// word returns the name of an enum value in a policy file, or "" if the file omits it. Descriptors may hold numbers that the
// schema lacks: the checks refuse them.
func word[T ~string](e protoreflect.Enum) T {
	if name := document.EnumName(e); name != "" || e.Number() == 0 {
		return T(name)
	}
	return T(strconv.Itoa(int(e.Number())))
}

// checkWord refuses a name that the schema lacks. "" means the default.
func checkWord[T ~string](report *document.Report, field string, said T, of protoreflect.Enum) {
	if said == "" {
		return
	}
	if names := document.EnumNames(of.Descriptor()); !slices.Contains(names, string(said)) {
		report.Errorf(field, string(said), "must be %s", document.OneOf(names))
	}
}

// Admission decides whether a call is refused that would not be answered before its deadline, judged by the last answers. ""
// means [AdmissionNone].
type Admission string

// The kinds of admission.
const (
	AdmissionNone   Admission = "NONE"   // it is sent
	AdmissionRefuse Admission = "REFUSE" // it is refused before its first attempt, and extra attempts are not sent
)

// Criticality decides which calls are refused first when not all can be answered in time. "" means [CriticalityDefault].
type Criticality string

// The criticalities, in the order in which calls are refused.
const (
	CriticalitySheddable Criticality = "SHEDDABLE" // refused when half as many attempts run as can be answered in time
	CriticalityDefault   Criticality = "DEFAULT"   // refused when as many attempts run as can be answered in time
	CriticalityCritical  Criticality = "CRITICAL"  // refused when as many attempts of critical calls run as can be answered in time
)
