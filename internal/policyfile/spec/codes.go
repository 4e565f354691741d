// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// maxCode is the highest code that gRPC defines.
const maxCode = codes.Unauthenticated

// sorted returns a sorted copy of codes, without duplicates.
func sorted(list []codes.Code) []codes.Code {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// without returns the codes of a list that are not in other.
func without(list, other []codes.Code) []codes.Code {
	return slices.DeleteFunc(sorted(list), func(c codes.Code) bool { return slices.Contains(other, c) })
}

// checkCodes wants at least one code. Reading has refused what is none.
func checkCodes(report *document.Report, field string, list []codes.Code) {
	if len(list) == 0 && report.Whole(field) {
		report.Errorf(field, nil, "must list at least one code, such as UNAVAILABLE")
	}
}

// notFailure is the message for OK: gRPC's own clients accept it, and then never retry it.
const notFailure = "is not a failure; list codes such as UNAVAILABLE"
