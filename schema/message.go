// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type schema = jsonschema.Schema

// writer makes schemas of messages. Everything is written where it stands, without references: what
// stands beside a reference is ignored by some editors, and the only key by others.
type writer struct {
	rules   map[protoreflect.FullName]rule
	applied map[protoreflect.FullName]bool // the rules that some field or message has had
	inside  []protoreflect.FullName        // the messages around
}

func (w *writer) message(m *protogen.Message) (*schema, error) {
	name := m.Desc.FullName()
	if slices.Contains(w.inside, name) {
		return nil, fmt.Errorf("%s contains itself, which only references could say", name)
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

// never takes no value.
func never() *schema { return &schema{Not: &schema{}} }

// isRequired reads the comment: the proto itself has no such word.
func isRequired(f *protogen.Field) bool {
	return strings.Contains(text(f.Comments), " Required")
}

// exclusive lets no member of a oneof stand beside another.
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

// text is a comment without its line breaks; paragraphs stay.
func text(c protogen.CommentSet) string {
	var paragraphs []string
	for p := range strings.SplitSeq(string(c.Leading), "\n\n") {
		paragraphs = append(paragraphs, strings.Join(strings.Fields(p), " "))
	}
	return strings.TrimSpace(strings.Join(paragraphs, "\n\n"))
}
