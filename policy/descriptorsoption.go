// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// option is a policy that stands in a .proto. It is checked as that of a file is, under the path "retry",
// which its problems do not show.
type option struct {
	at       Diagnostic // file and place
	field    string     // "/acme.v1.Orders/Get: (stagger.policy.v1.retry)"
	problems *problems
	warnings *problems
}

const optionRoot = "retry"

func newOption(d protoreflect.Descriptor, name Name, extension protoreflect.ExtensionType) *option {
	src := &source{unread: map[string]bool{}, above: map[string]bool{}, inherited: map[string]string{}}
	return &option{
		at:       placeOf(d),
		field:    fmt.Sprintf("%v: (%s)", name, extension.TypeDescriptor().FullName()),
		problems: &problems{source: src},
		warnings: &problems{source: src, severity: SeverityWarning},
	}
}

// placeOf is where a descriptor stands, as far as it tells: generated code holds no lines.
func placeOf(d protoreflect.Descriptor) Diagnostic {
	at := Diagnostic{File: pathText(d.ParentFile().Path())}
	if lines := d.ParentFile().SourceLocations(); lines.Len() > 0 {
		if l := lines.ByDescriptor(d); l.Path != nil {
			at.Line, at.Column = l.StartLine+1, l.StartColumn+1
		}
	}
	return at
}

// pathText is the path of a .proto: descriptors may hold anything.
func pathText(path string) string {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// refuse reports what is wrong with the option as a whole.
func (o *option) refuse(format string, args ...any) {
	o.problems.add(optionRoot, nil, format, args...)
}

// read converts and checks the option.
func (o *option) read(r *policyv1.RetryPolicy, budgets map[string]bool) RetrySpec {
	root := &node{kind: object}
	o.problems.root = root
	root.put(entry{key: optionRoot, value: o.object(optionRoot, r.ProtoReflect())})
	spec := convertRetry(o.problems, optionRoot, r)
	checkRetry(o.problems, optionRoot+".", spec)
	checkBudgetName(o.problems, optionRoot+".budget", spec.Budget, budgets)
	return spec
}

// rename sorts problems and gives them the option's place and name.
func (o *option) rename(ps *problems) []Diagnostic {
	list := ps.sorted()
	for i := range list {
		p := &list[i]
		p.File, p.Line, p.Column = o.at.File, o.at.Line, o.at.Column
		p.Field = o.field + strings.TrimPrefix(p.Field, optionRoot)
	}
	return list
}

// object is a message as a file would have it, so that the checks know what was written.
func (o *option) object(path string, m protoreflect.Message) *node {
	n := &node{kind: object}
	if unknown := m.GetUnknown(); len(unknown) > 0 && len(o.warnings.list) == 0 {
		number, _, _ := protowire.ConsumeTag(unknown)
		o.warnings.add(path, nil, "field number %d is not known to this version of stagger and has no effect: a later one has defined it", number)
	}
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if !m.Has(fd) {
			continue
		}
		field, v := under(path, fd.JSONName()), m.Get(fd)
		value := &node{kind: list}
		if !fd.IsList() {
			value = o.value(field, fd, v)
		}
		for i := 0; fd.IsList() && i < v.List().Len(); i++ {
			value.items = append(value.items, o.value(item(field, i), fd, v.List().Get(i)))
		}
		n.put(entry{key: fd.JSONName(), value: value})
	}
	return n
}

// value reports what a file could not say: numbers without a name, and times that are none.
func (o *option) value(field string, fd protoreflect.FieldDescriptor, v protoreflect.Value) *node {
	n := &node{kind: text}
	switch {
	case fd.Enum() != nil && fd.Enum().Values().ByNumber(v.Enum()) == nil:
		n.raw = strconv.Itoa(int(v.Enum()))
		o.problems.misread(field, n, "%s", anyOf(fd.Enum()))
	case fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Duration":
		o.duration(field, n, v.Message())
	case fd.Message() != nil:
		return o.object(field, v.Message())
	}
	return n
}

// anyOf says what an enumeration may be.
func anyOf(ed protoreflect.EnumDescriptor) string {
	if ed.FullName() == policyv1.StatusCode(0).Descriptor().FullName() {
		return aCode
	}
	return "must be " + oneOf(enumNames(ed))
}

// duration reports a Duration that is not one, or that Go would cut.
func (o *option) duration(field string, n *node, m protoreflect.Message) {
	d, ok := m.Interface().(*durationpb.Duration)
	switch {
	case !ok:
	case !d.IsValid():
		n.raw = fmt.Sprintf("{seconds: %d, nanos: %d}", d.GetSeconds(), d.GetNanos())
		o.problems.misread(field, n, "must have nanos from 0 to 999999999, with the sign of the seconds, and at most 10,000 years")
	case d.GetSeconds() > maxSeconds || d.GetSeconds() < -maxSeconds:
		n.raw = fmt.Sprintf("{seconds: %d}", d.GetSeconds())
		o.problems.misread(field, n, "must be at most %ds, 292 years", maxSeconds)
	}
}
