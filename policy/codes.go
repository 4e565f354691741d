// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
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

func isCode(ed protoreflect.EnumDescriptor) bool {
	return ed.FullName() == policyv1.StatusCode(0).Descriptor().FullName()
}

func convertCodes(list []policyv1.StatusCode) []codes.Code {
	converted := make([]codes.Code, len(list))
	for i, c := range list {
		converted[i] = codes.Code(c)
	}
	return sorted(converted)
}

const aCode = "must be a status code's name such as UNAVAILABLE, or its number, 1 to 16"

// readCode reads a status code by its name, in any case, or by its number.
func readCode(report *document.Report, field string, n *document.Node, ed protoreflect.EnumDescriptor) protoreflect.Value {
	switch {
	case n.Kind == document.Text && strings.EqualFold(n.Text, "OK") || n.Kind == document.Number && n.Text == "0":
		report.Misread(field, n, notFailure)
	case n.Kind == document.Number:
		if c, ok := codename.Parse(n.Text); ok {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(c))
		}
		report.Misread(field, n, aCode)
	case n.Kind == document.Text:
		if v, ok := document.EnumNumber(ed, n.Text); ok {
			return protoreflect.ValueOfEnum(v)
		}
		report.Misread(field, n, "%s", document.Lazy(func() string {
			if near := document.EnumNearest(ed, n.Text); near != "" {
				return "did you mean " + near + "?"
			}
			return aCode
		}))
	default:
		report.Misfit(field, n, aCode)
	}
	return protoreflect.Value{}
}

func checkCodes(report *document.Report, field string, list []codes.Code) {
	switch {
	case len(list) == 0 && report.Whole(field):
		report.Errorf(field, nil, "must list at least one code, such as UNAVAILABLE")
	case len(list) == 0 || !report.Whole(field):
	case slices.Contains(list, codes.OK):
		report.Errorf(field, "OK", notFailure)
	case slices.Max(list) > maxCode:
		report.Errorf(field, uint32(slices.Max(list)), "must hold only codes that gRPC defines (1 to %d)", maxCode)
	}
}

// notFailure is the message for OK: gRPC's own clients accept it, and then never retry it.
const notFailure = "is not a failure; list codes such as UNAVAILABLE"
