// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

func (d Decoder) scalar(field string, n *Node, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		if n.Kind == Text {
			return protoreflect.ValueOfString(n.Text)
		}
		d.Report.Misfit(field, n, "must be a string; put it in quotes")
	case protoreflect.BoolKind:
		if n.Kind == Bool {
			return protoreflect.ValueOfBool(n.IsTrue())
		}
		d.Report.Misfit(field, n, "must be true or false, without quotes")
	case protoreflect.DoubleKind:
		if f, ok := d.Report.number(field, n); ok {
			return protoreflect.ValueOfFloat64(f)
		}
	case protoreflect.Uint32Kind:
		if u, ok := d.integer(field, n, math.MaxUint32); ok {
			return protoreflect.ValueOfUint32(uint32(u))
		}
	case protoreflect.Uint64Kind:
		if u, ok := d.integer(field, n, math.MaxUint64); ok {
			return protoreflect.ValueOfUint64(u)
		}
	case protoreflect.BytesKind:
		if b, ok := d.bytes(field, n); ok {
			return protoreflect.ValueOfBytes(b)
		}
	default:
		d.Report.Misread(field, n, "has a type that is not supported: %v", fd.Kind()) // no such field today
	}
	return protoreflect.Value{}
}

func (d Decoder) integer(field string, n *Node, most uint64) (uint64, bool) {
	if n.Kind != Number {
		d.Report.Misfit(field, n, "must be a whole number, without quotes")
		return 0, false
	}
	if !jsonInteger.MatchString(n.Text) {
		d.Report.Misread(field, n, "must be a whole number, written without point, exponent or prefix")
		return 0, false
	}
	u, err := strconv.ParseUint(n.Text, 10, 64)
	if err != nil || u > most {
		d.Report.Misread(field, n, "must be a whole number from 0 to %d", most)
		return 0, false
	}
	return u, true
}

// bytes decodes base64 in either alphabet, with or without padding, as protojson does.
func (d Decoder) bytes(field string, n *Node) ([]byte, bool) {
	const form = "must be bytes in base64, in quotes"
	if n.Kind != Text {
		d.Report.Misfit(field, n, form)
		return nil, false
	}
	text := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(n.Text), "=")
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		d.Report.Misread(field, n, form)
		return nil, false
	}
	return b, true
}

// enum reads the name of an enum value, in upper or lower case.
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

// EnumNames returns the names that a document may use: without the prefix, and without UNSPECIFIED.
func EnumNames(ed protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range ed.Values().Len() {
		if v := ed.Values().Get(i); v.Number() != 0 {
			names = append(names, strings.TrimPrefix(string(v.Name()), enumPrefix(ed)))
		}
	}
	return names
}

// EnumName returns the name that a document uses for a value, or "".
func EnumName(e protoreflect.Enum) string {
	v := e.Descriptor().Values().ByNumber(e.Number())
	if v == nil || e.Number() == 0 {
		return ""
	}
	return strings.TrimPrefix(string(v.Name()), enumPrefix(e.Descriptor()))
}

// EnumNumber returns the number of a name that a document may use, in upper or lower case.
func EnumNumber(ed protoreflect.EnumDescriptor, name string) (protoreflect.EnumNumber, bool) {
	for _, known := range EnumNames(ed) {
		if strings.EqualFold(known, name) {
			return ed.Values().ByName(protoreflect.Name(enumPrefix(ed) + known)).Number(), true
		}
	}
	return 0, false
}

// EnumNearest returns the name that resembles a word most, or "".
func EnumNearest(ed protoreflect.EnumDescriptor, word string) string {
	return Nearest(enumWord(ed, word), EnumNames(ed))
}

// enumWord returns a word without the prefix, which documents do not use.
func enumWord(ed protoreflect.EnumDescriptor, word string) string {
	return strings.TrimPrefix(strings.ToUpper(Shorten(word)), enumPrefix(ed))
}

// enumPrefix returns the prefix that protobuf's style requires before each value: JITTER_ of JITTER_UNSPECIFIED.
func enumPrefix(ed protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(ed.Values().Get(0).Name()), "UNSPECIFIED")
}
