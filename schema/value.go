// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The types of JSON Schema that are needed most.
const (
	typeString = "string"
	typeArray  = "array"
	typeObject = "object"
)

// value is the schema of one value of a field.
func (w *writer) value(f *protogen.Field) (*schema, error) {
	switch f.Desc.Kind() {
	case protoreflect.BoolKind:
		return &schema{Type: "boolean"}, nil
	case protoreflect.StringKind:
		return &schema{Type: typeString}, nil
	case protoreflect.DoubleKind:
		return &schema{Type: "number"}, nil
	case protoreflect.Uint32Kind:
		return &schema{Type: "integer", Minimum: new(0.0), Maximum: new(float64(math.MaxUint32))}, nil
	case protoreflect.EnumKind:
		return enum(f.Enum), nil
	case protoreflect.MessageKind:
		return w.inner(f.Message)
	default:
		return nil, fmt.Errorf("%s is of a kind that policy files do not have: %v", f.Desc.FullName(), f.Desc.Kind())
	}
}

func (w *writer) inner(m *protogen.Message) (*schema, error) {
	switch m.Desc.FullName() {
	case "google.protobuf.Duration":
		return moreThanZero(), nil
	case "google.protobuf.Struct":
		return &schema{Type: typeObject}, nil
	case "google.protobuf.ListValue":
		return &schema{Type: typeArray}, nil
	default:
		return w.message(m)
	}
}

// enum offers the names, and takes them in small letters too; status codes also by their numbers.
func enum(e *protogen.Enum) *schema {
	prefix := strings.TrimSuffix(string(e.Desc.Values().Get(0).Name()), "UNSPECIFIED")
	names := &schema{Type: typeString, Extra: map[string]any{}}
	var meanings, anyCase []string
	for _, v := range e.Values {
		if v.Desc.Number() == 0 {
			continue
		}
		name := strings.TrimPrefix(string(v.Desc.Name()), prefix)
		names.Enum = append(names.Enum, name)
		meanings, anyCase = append(meanings, text(v.Comments)), append(anyCase, foldCase(name))
	}
	names.Extra["enumDescriptions"] = meanings // for editors
	s := &schema{AnyOf: []*schema{names, {Type: typeString, Pattern: "^(" + strings.Join(anyCase, "|") + ")$"}}}
	if e.Desc.Name() == "StatusCode" {
		last := e.Desc.Values().Get(e.Desc.Values().Len() - 1).Number()
		s.AnyOf = append(s.AnyOf, &schema{Type: "integer", Minimum: new(1.0), Maximum: new(float64(last))})
	}
	return s
}

// foldCase is an expression for a name in any case, as strings.EqualFold takes it.
func foldCase(name string) string {
	var b strings.Builder
	for _, r := range name {
		class := []rune{r}
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			class = append(class, next)
		}
		if len(class) == 1 {
			b.WriteRune(r)
			continue
		}
		b.WriteString("[" + string(class) + "]")
	}
	return b.String()
}

const form = `must be seconds with at most nine decimals and an "s", such as "0.05s"`

// moreThanZero is a duration, which has a digit that is not 0. Editors do not show why a "not" holds.
func moreThanZero() *schema {
	some := &schema{Pattern: "[1-9]"}
	addExtra(some, "patternErrorMessage", "must be more than 0s")
	s := &schema{Type: typeString, AllOf: []*schema{some}}
	pattern(`^0*[0-9]{1,10}(\.[0-9]{1,9})?s$`, form)(s)
	addExtra(s, "errorMessage", form) // for what is no text
	return s
}
