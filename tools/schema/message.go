// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type schema = jsonschema.Schema

// writer builds schemas of messages. It repeats definitions and uses no references: some editors ignore keys next to a
// reference, others ignore all but those.
type writer struct {
	rules   map[protoreflect.FullName]rule
	applied map[protoreflect.FullName]bool // rules that were applied to a field or message
	inside  []protoreflect.FullName        // the enclosing messages
}

func (w *writer) message(m *protogen.Message) (*schema, error) {
	name := m.Desc.FullName()
	if slices.Contains(w.inside, name) {
		return nil, fmt.Errorf("%s contains itself, which needs references", name)
	}
	w.inside = append(w.inside, name)
	defer func() { w.inside = w.inside[:len(w.inside)-1] }()
	s := &schema{Type: typeObject, Description: text(m.Comments), Properties: map[string]*schema{}, AdditionalProperties: never()}
	for _, f := range m.Fields {
		key := f.Desc.JSONName()
		value, err := w.field(f)
		if err != nil {
			return nil, err
		}
		s.Properties[key] = value
		s.PropertyOrder = append(s.PropertyOrder, key)
		if isRequired(f) {
			s.Required = append(s.Required, key)
		}
	}
	for _, o := range m.Oneofs {
		if !o.Desc.IsSynthetic() {
			s.DependencySchemas = exclusive(o)
		}
	}
	w.apply(name, s)
	return s, nil
}

func (w *writer) field(f *protogen.Field) (*schema, error) {
	s, err := w.value(f)
	if err != nil {
		return nil, err
	}
	w.apply(f.Desc.FullName(), s)
	if f.Desc.IsList() {
		s = &schema{Type: typeArray, Items: s}
		w.apply(f.Desc.FullName()+"[]", s)
	}
	if s.Description = text(f.Comments); s.Description == "" {
		return nil, fmt.Errorf("%s has no comment", f.Desc.FullName())
	}
	if said := strings.Trim(string(s.Default), `"`) + " when absent"; s.Default != nil && !strings.Contains(s.Description, said) {
		return nil, fmt.Errorf("%s: the comment does not say %q", f.Desc.FullName(), said)
	}
	return s, nil
}

func (w *writer) apply(name protoreflect.FullName, s *schema) {
	if apply := w.rules[name]; apply != nil {
		apply(s)
	}
	w.applied[name] = true
}

// never returns a schema that accepts no value.
func never() *schema { return &schema{Not: &schema{}} }

// isRequired reads the comment, since the proto has no keyword for it.
func isRequired(f *protogen.Field) bool {
	return strings.Contains(text(f.Comments), " Required")
}

// exclusive allows only one member of a oneof.
func exclusive(o *protogen.Oneof) map[string]*schema {
	beside := map[string]*schema{}
	for _, f := range o.Fields {
		others := map[string]*schema{}
		for _, other := range o.Fields {
			if other != f {
				others[other.Desc.JSONName()] = never()
			}
		}
		beside[f.Desc.JSONName()] = &schema{Properties: others}
	}
	return beside
}

// text returns a comment without its line breaks; paragraphs stay.
func text(c protogen.CommentSet) string {
	var paragraphs []string
	for p := range strings.SplitSeq(string(c.Leading), "\n\n") {
		paragraphs = append(paragraphs, strings.Join(strings.Fields(p), " "))
	}
	return strings.TrimSpace(strings.Join(paragraphs, "\n\n"))
}

// The most frequent types of JSON Schema.
const (
	typeString = "string"
	typeArray  = "array"
	typeObject = "object"
)

// value returns the schema of a field's value.
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
		return nil, fmt.Errorf("%s has a type that policy files do not have: %v", f.Desc.FullName(), f.Desc.Kind())
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

// enum returns a schema that offers the names, and also accepts them in lower case; status codes also as numbers.
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

// foldCase returns an expression for a name in any case, like strings.EqualFold.
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

// moreThanZero returns a schema of positive durations: those with a digit other than 0. Editors do not explain a "not".
func moreThanZero() *schema {
	some := &schema{Pattern: "[1-9]"}
	addExtra(some, "patternErrorMessage", "must be more than 0s")
	s := &schema{Type: typeString, AllOf: []*schema{some}}
	pattern(`^0*[0-9]{1,10}(\.[0-9]{1,9})?s$`, form)(s)
	addExtra(s, "errorMessage", form) // for values that are not strings
	return s
}
