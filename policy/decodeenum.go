// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// decodeEnum reads the name of a value without the enum's prefix, in upper or lower case (gRFC A6
// wants that for codes), and a status code by its number too.
func decodeEnum(ps *problems, path string, n *node, ed protoreflect.EnumDescriptor) protoreflect.Value {
	isCode := ed.FullName() == policyv1.StatusCode(0).Descriptor().FullName()
	names := enumNames(ed)
	switch {
	case isCode && (n.kind == text && strings.EqualFold(n.text, "OK") || n.kind == number && n.text == "0"):
		ps.misread(path, n, notFailure)
	case isCode && n.kind == number:
		v, err := strconv.ParseInt(n.text, 10, 32)
		if err == nil && jsonInteger.MatchString(n.text) && v > 0 && v <= int64(maxCode) {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(v))
		}
		ps.misread(path, n, "%s", aCode)
	case n.kind == text:
		for _, name := range names {
			if strings.EqualFold(name, n.text) {
				return protoreflect.ValueOfEnum(ed.Values().ByName(protoreflect.Name(enumPrefix(ed) + name)).Number())
			}
		}
		ps.misread(path, n, "%s", advice(func() string { return advise(n.text, ed, names, isCode) }))
	case isCode:
		misfit(ps, path, n, aCode)
	default:
		misfit(ps, path, n, "must be "+oneOf(names))
	}
	return protoreflect.Value{}
}

const aCode = "must be a status code's name such as UNAVAILABLE, or its number, 1 to 16"

// advise says what to write for a name that the enum does not have.
func advise(name string, ed protoreflect.EnumDescriptor, names []string, isCode bool) string {
	name = strings.TrimPrefix(strings.ToUpper(shorten(name)), enumPrefix(ed))
	if isCode && nearest(name, names) == "" {
		return aCode
	}
	return suggest(name, names)
}

// enumNames are the names that a file may use: all but the one for "not said".
func enumNames(ed protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range ed.Values().Len() {
		if v := ed.Values().Get(i); v.Number() != 0 {
			names = append(names, strings.TrimPrefix(string(v.Name()), enumPrefix(ed)))
		}
	}
	return names
}

// enumPrefix is what protobuf's rules put before each value: JITTER_ of JITTER_UNSPECIFIED.
func enumPrefix(ed protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(ed.Values().Get(0).Name()), "UNSPECIFIED")
}
