// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// What JSON takes for a number, and gRFC A6 for an integer. YAML has more forms, such as 0x10 and
// 1_000, that other readers of the file do not share.
var (
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	jsonInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
)

// misfit reports a value of the wrong kind.
func misfit(ps *problems, field string, n *node, message string) {
	switch n.kind {
	case broken:
		ps.lose(field)
	case null:
		ps.misread(field, n, "has no value: %s, or be left out", message)
	default:
		ps.misread(field, n, "%s", message)
	}
}

func decodeScalar(ps *problems, path string, n *node, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		if n.kind == text {
			return protoreflect.ValueOfString(n.text)
		}
		misfit(ps, path, n, "must be a text; put it in quotes")
	case protoreflect.BoolKind:
		if n.kind == boolean {
			return protoreflect.ValueOfBool(isTrue(n))
		}
		misfit(ps, path, n, "must be true or false, without quotes")
	case protoreflect.DoubleKind:
		if f, ok := parseNumber(ps, path, n); ok {
			return protoreflect.ValueOfFloat64(f)
		}
	case protoreflect.Uint32Kind:
		if u, ok := parseInteger(ps, path, n, fd); ok {
			return protoreflect.ValueOfUint32(u)
		}
	default:
		ps.misread(path, n, "is of a kind that is not read: %v", fd.Kind()) // no such field today
	}
	return protoreflect.Value{}
}

// isTrue is for YAML too, where a boolean may be True or TRUE.
func isTrue(n *node) bool { return strings.EqualFold(n.text, "true") }

func parseNumber(ps *problems, path string, n *node) (float64, bool) {
	if n.kind != number {
		misfit(ps, path, n, "must be a number, without quotes")
		return 0, false
	}
	if !jsonNumber.MatchString(n.text) {
		ps.misread(path, n, "must be a finite decimal number as in JSON, such as 1.5")
		return 0, false
	}
	f, err := strconv.ParseFloat(n.text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(n.text), "e")
	if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		ps.misread(path, n, "is beyond the range of a double")
		return 0, false
	}
	return f, true
}

func parseInteger(ps *problems, path string, n *node, fd protoreflect.FieldDescriptor) (uint32, bool) {
	if n.kind != number {
		misfit(ps, path, n, "must be a whole number, without quotes")
		return 0, false
	}
	if !jsonInteger.MatchString(n.text) {
		ps.misread(path, n, "must be a whole number, written without point, exponent or prefix")
		return 0, false
	}
	if strings.HasPrefix(n.text, "-") && zeroIsWrong(fd) {
		return 0, true
	}
	u, err := strconv.ParseUint(n.text, 10, 32)
	if err != nil {
		ps.misread(path, n, "must be a whole number from 0 to %d", uint32(math.MaxUint32))
		return 0, false
	}
	return uint32(u), true
}

// zeroIsWrong reports whether the checks refuse 0. They then say what is right for a negative
// number too, which the field cannot hold.
func zeroIsWrong(fd protoreflect.FieldDescriptor) bool {
	return fd.Name() == "max_attempts" || fd.Name() == "max_tokens" || fd.Name() == "max_waiting"
}
