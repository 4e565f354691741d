// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// CodeSet is a set of status codes. The zero value is empty.
type CodeSet uint32

// maxCode is the highest code that gRPC defines.
const maxCode = codes.Unauthenticated

// Codes returns the set of the given codes.
func Codes(list ...codes.Code) CodeSet {
	var s CodeSet
	for _, c := range list {
		s |= bit(c)
	}
	return s
}

// Has reports whether c is in the set. OK and codes that gRPC does not define are in no set that
// passes validation.
func (s CodeSet) Has(c codes.Code) bool { return s&bit(c) != 0 }

// List returns the codes of the set, lowest first.
func (s CodeSet) List() []codes.Code {
	var list []codes.Code
	for c := range codes.Code(32) {
		if s.Has(c) {
			list = append(list, c)
		}
	}
	return list
}

// String lists the names as a policy file spells them: "RESOURCE_EXHAUSTED, UNAVAILABLE".
func (s CodeSet) String() string {
	return codename.List(s.List())
}

// bit is 0 for a code that no set can hold: an application may invent code 1000.
func bit(c codes.Code) CodeSet {
	if c > 31 {
		return 0
	}
	return 1 << c
}

func isCode(ed protoreflect.EnumDescriptor) bool {
	return ed.FullName() == policyv1.StatusCode(0).Descriptor().FullName()
}

func convertCodes(list []policyv1.StatusCode) CodeSet {
	var s CodeSet
	for _, c := range list {
		s |= bit(codes.Code(c))
	}
	return s
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

func checkCodes(report *document.Report, field string, s CodeSet) {
	switch {
	case s == 0 && report.Whole(field):
		report.Errorf(field, nil, "must list at least one code, such as UNAVAILABLE")
	case s.Has(0):
		report.Errorf(field, "OK", notFailure)
	case s >= 1<<(maxCode+1):
		report.Errorf(field, uint32(s), "must hold only codes that gRPC defines (1 to %d)", maxCode)
	}
}

// notFailure is said of OK: gRPC's own clients take it, and then never retry it.
const notFailure = "is not a failure; list codes such as UNAVAILABLE"
