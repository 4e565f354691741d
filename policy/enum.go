// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/document"
)

// The constants of each kind are the words of a policy file; TestWords compares them with the schema. "" leaves the default.

// word is the word of a policy file for a value of the schema; "" if a file left it out. Descriptors may hold numbers that
// the schema does not have: the checks refuse them.
func word[T ~string](e protoreflect.Enum) T {
	if name := document.EnumName(e); name != "" || e.Number() == 0 {
		return T(name)
	}
	return T(strconv.Itoa(int(e.Number())))
}

// checkWord refuses a word that the schema does not have. "" is for the default.
func checkWord[T ~string](report *document.Report, field string, said T, of protoreflect.Enum) {
	if said == "" {
		return
	}
	if names := document.EnumNames(of.Descriptor()); !slices.Contains(names, string(said)) {
		report.Errorf(field, string(said), "must be %s", document.OneOf(names))
	}
}

// permission is what ALLOW or DENY says; nil if a file left it out.
func permission(e protoreflect.Enum) *bool {
	if e.Number() == 0 {
		return nil
	}
	return new(document.EnumName(e) == allow)
}

const allow, deny = "ALLOW", "DENY"

func denies(permission *bool) bool { return permission != nil && !*permission }

// Admission is what becomes of a call that cannot be answered before its deadline, as far as the last answers tell.
// "" means [AdmissionNone].
type Admission string

// The kinds of admission.
const (
	AdmissionNone   Admission = "NONE"   // it is made
	AdmissionRefuse Admission = "REFUSE" // it is refused before its first attempt, and extra attempts are not sent
	AdmissionAuto   Admission = "AUTO"   // the same of sheddable calls, and of all where servers report utilization or refuse what they have not worked on
)

// Criticality is which calls are refused first when not all can be answered in time. "" means [CriticalityDefault].
type Criticality string

// The criticalities, those that are refused first before the others.
const (
	CriticalitySheddable Criticality = "SHEDDABLE" // from half of the attempts on that can be answered in time
	CriticalityDefault   Criticality = "DEFAULT"   // when as many attempts run as can be answered in time
	CriticalityCritical  Criticality = "CRITICAL"  // when as many of critical calls run; other calls do not count
)
