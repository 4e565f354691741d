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

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// policyOption is a policy in a .proto. It is checked like that of a file, under the path "retry", which its diagnostics omit.
type policyOption struct {
	at     Diagnostic // file and line
	field  string     // "/acme.v1.Orders/Get: (stagger.policy.v1.retry)"
	report *document.Report
	warned bool
}

const optionRoot = "retry"

func newPolicyOption(d protoreflect.Descriptor, name string, extension protoreflect.ExtensionType) *policyOption {
	return &policyOption{
		at:     placeOf(d),
		field:  fmt.Sprintf("%s: (%s)", name, extension.TypeDescriptor().FullName()),
		report: new(document.Report),
	}
}

// placeOf returns the place of a descriptor, as far as it is known: generated code has no lines.
func placeOf(d protoreflect.Descriptor) Diagnostic {
	at := Diagnostic{File: pathText(d.ParentFile().Path())}
	if lines := d.ParentFile().SourceLocations(); lines.Len() > 0 {
		if l := lines.ByDescriptor(d); l.Path != nil {
			at.Line, at.Column = l.StartLine+1, l.StartColumn+1
		}
	}
	return at
}

// pathText returns the path of a .proto as text: descriptors may contain anything.
func pathText(path string) string {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// refuse reports an error in the option as a whole.
func (o *policyOption) refuse(format string, args ...any) {
	o.report.Errorf(optionRoot, nil, format, args...)
}

// read converts and checks the option.
func (o *policyOption) read(r *policyv1.RetryPolicy, budgets map[string]bool) RetrySpec {
	root := &document.Node{Kind: document.Object}
	o.report.SetRoot(root)
	root.AddEntry(document.Entry{Key: optionRoot, Value: o.object(optionRoot, r.ProtoReflect())})
	spec := convertRetry(o.report, optionRoot, r)
	checkRetry(o.report, optionRoot+".", spec)
	checkBudgetName(o.report, optionRoot+".budget", spec.Budget, budgets)
	return spec
}

// rename sets the option's place and name in diagnostics.
func (o *policyOption) rename(list []Diagnostic) []Diagnostic {
	for i := range list {
		d := &list[i]
		d.File, d.Line, d.Column = o.at.File, o.at.Line, o.at.Column
		d.Field = o.field + strings.TrimPrefix(d.Field, optionRoot)
	}
	return list
}

// object converts a message to its form in a file, so that the checks know which fields were set.
func (o *policyOption) object(path string, m protoreflect.Message) *document.Node {
	n := &document.Node{Kind: document.Object}
	if unknown := m.GetUnknown(); len(unknown) > 0 && !o.warned {
		o.warned = true
		number, _, _ := protowire.ConsumeTag(unknown)
		o.report.Warnf(path, nil, "field number %d is not known to this version of stagger and has no effect: a later version defines it", number)
	}
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if !m.Has(fd) {
			continue
		}
		field, v := document.Under(path, fd.JSONName()), m.Get(fd)
		value := &document.Node{Kind: document.List}
		if !fd.IsList() {
			value = o.value(field, fd, v)
		}
		for i := 0; fd.IsList() && i < v.List().Len(); i++ {
			value.Items = append(value.Items, o.value(document.Item(field, i), fd, v.List().Get(i)))
		}
		n.AddEntry(document.Entry{Key: fd.JSONName(), Value: value})
	}
	return n
}

// value converts a field. It reports values that a file can't have: enum numbers without a name, and invalid durations.
func (o *policyOption) value(field string, fd protoreflect.FieldDescriptor, v protoreflect.Value) *document.Node {
	n := &document.Node{Kind: document.Text}
	switch {
	case fd.Enum() != nil && fd.Enum().Values().ByNumber(v.Enum()) == nil:
		n.Raw = strconv.Itoa(int(v.Enum()))
		o.report.Misread(field, n, "%s", anyOf(fd.Enum()))
	case fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Duration":
		o.duration(field, n, v.Message())
	case fd.Message() != nil:
		return o.object(field, v.Message())
	}
	return n
}

// anyOf returns a text with the values of an enum.
func anyOf(ed protoreflect.EnumDescriptor) string {
	if isCode(ed) {
		return aCode
	}
	return "must be " + document.OneOf(document.EnumNames(ed))
}

// duration reports a Duration that is invalid, or that Go would truncate.
func (o *policyOption) duration(field string, n *document.Node, m protoreflect.Message) {
	d, ok := m.Interface().(*durationpb.Duration)
	switch {
	case !ok:
	case !d.IsValid():
		n.Raw = fmt.Sprintf("{seconds: %d, nanos: %d}", d.GetSeconds(), d.GetNanos())
		o.report.Misread(field, n, "must have nanos from 0 to 999999999, with the sign of the seconds, and at most 10,000 years")
	case d.GetSeconds() > document.MaxSeconds || d.GetSeconds() < -document.MaxSeconds:
		n.Raw = fmt.Sprintf("{seconds: %d}", d.GetSeconds())
		o.report.Misread(field, n, "must be at most %ds, 292 years", document.MaxSeconds)
	}
}
