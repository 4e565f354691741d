// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/document"
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
