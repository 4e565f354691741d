// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/base64"
	"math"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// What JSON takes for a number, and gRFC A6 for an integer. YAML has more forms, such as 0x10 and
// 1_000, that other readers of the document do not share.
var (
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	jsonInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
)

const notJSONNumber = "must be a finite decimal number as in JSON, such as 1.5"

func (d Decoder) scalar(field string, n *Node, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		if n.Kind == Text {
			return protoreflect.ValueOfString(n.Text)
		}
		d.Report.Misfit(field, n, "must be a text; put it in quotes")
	case protoreflect.BoolKind:
		if n.Kind == Bool {
			return protoreflect.ValueOfBool(n.IsTrue())
		}
		d.Report.Misfit(field, n, "must be true or false, without quotes")
	case protoreflect.DoubleKind:
		if f, ok := d.number(field, n); ok {
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
		d.Report.Misread(field, n, "is of a kind that is not read: %v", fd.Kind()) // no such field today
	}
	return protoreflect.Value{}
}

// IsTrue reads a boolean, which in YAML may be True or TRUE.
func (n *Node) IsTrue() bool { return strings.EqualFold(n.Text, "true") }

func (d Decoder) number(field string, n *Node) (float64, bool) {
	if n.Kind != Number {
		d.Report.Misfit(field, n, "must be a number, without quotes")
		return 0, false
	}
	if !jsonNumber.MatchString(n.Text) {
		d.Report.Misread(field, n, notJSONNumber)
		return 0, false
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(n.Text), "e")
	if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		d.Report.Misread(field, n, "is beyond the range of a double")
		return 0, false
	}
	return f, true
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

// bytes are in base64, as protojson takes them: of either alphabet, padded or not.
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
