// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// enum reads the name of a value, in upper or lower case.
func (d Decoder) enum(field string, n *Node, ed protoreflect.EnumDescriptor) protoreflect.Value {
	if n.Kind != Text {
		d.Report.Misfit(field, n, "must be "+OneOf(EnumNames(ed)))
		return protoreflect.Value{}
	}
	if v, ok := EnumNumber(ed, n.Text); ok {
		return protoreflect.ValueOfEnum(v)
	}
	d.Report.Misread(field, n, "%s", Lazy(func() string { return Suggest(enumWord(ed, n.Text), EnumNames(ed)) }))
	return protoreflect.Value{}
}

// EnumNames are the names that a document may use: without prefix, all but the one for "not said".
func EnumNames(ed protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range ed.Values().Len() {
		if v := ed.Values().Get(i); v.Number() != 0 {
			names = append(names, strings.TrimPrefix(string(v.Name()), enumPrefix(ed)))
		}
	}
	return names
}

// EnumName is the name that a document uses for a value; "" if it has none.
func EnumName(e protoreflect.Enum) string {
	v := e.Descriptor().Values().ByNumber(e.Number())
	if v == nil || e.Number() == 0 {
		return ""
	}
	return strings.TrimPrefix(string(v.Name()), enumPrefix(e.Descriptor()))
}

// EnumNumber is the number of a name that a document may use, in upper or lower case.
func EnumNumber(ed protoreflect.EnumDescriptor, name string) (protoreflect.EnumNumber, bool) {
	for _, known := range EnumNames(ed) {
		if strings.EqualFold(known, name) {
			return ed.Values().ByName(protoreflect.Name(enumPrefix(ed) + known)).Number(), true
		}
	}
	return 0, false
}

// EnumNearest is the name that was probably meant by a word; "" if none is near.
func EnumNearest(ed protoreflect.EnumDescriptor, word string) string {
	return Nearest(enumWord(ed, word), EnumNames(ed))
}

// enumWord is a word without the prefix, which does not belong into a document.
func enumWord(ed protoreflect.EnumDescriptor, word string) string {
	return strings.TrimPrefix(strings.ToUpper(Shorten(word)), enumPrefix(ed))
}

// enumPrefix is what protobuf's rules put before each value: JITTER_ of JITTER_UNSPECIFIED.
func enumPrefix(ed protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(ed.Values().Get(0).Name()), "UNSPECIFIED")
}
