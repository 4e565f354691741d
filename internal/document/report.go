// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Report collects what is to be said of one document. The zero value is for a config that was written in Go,
// where every field was read and none has a place. It is not safe for concurrent use.
//
// One mistake makes one diagnostic: a field that could not be read is not checked, nor is one that takes its
// value from a field which was reported.
type Report struct {
	file string
	root *Node // nil without a document

	errors, warnings findings

	unread    map[string]bool   // fields whose values could not be read, and were reported
	above     map[string]bool   // fields with such a field in them
	inherited map[string]string // field that the document leaves out, to the one whose value it takes
}

// findings are the diagnostics of one severity.
type findings struct {
	list []Diagnostic
	more int // that are not listed
}

// maxFindings is more than anybody reads. A document of a megabyte can have a hundred times as many.
const maxFindings = 1000

// NewReport returns a report on a document that is called file.
func NewReport(file string) *Report { return &Report{file: file} }

// SetRoot gives the report the values of its document.
func (r *Report) SetRoot(root *Node) { r.root = root }

// Errorf reports that field has a value that is not right; a nil value is not shown.
func (r *Report) Errorf(field string, value any, format string, args ...any) {
	r.record(SeverityError, field, value, format, args...)
}

// Warnf reports that field has a value that may surprise; a nil value is not shown.
func (r *Report) Warnf(field string, value any, format string, args ...any) {
	r.record(SeverityWarning, field, value, format, args...)
}

func (r *Report) record(severity Severity, field string, value any, format string, args ...any) {
	if r.Skipped(field) || r.repeats(field) || r.full(severity) {
		return
	}
	r.append(Diagnostic{Severity: severity, Field: field, Value: valueText(value), Message: fmt.Sprintf(format, args...)})
}

// ErrorAt reports what is wrong at a place, such as that of a key.
func (r *Report) ErrorAt(at Position, field, format string, args ...any) {
	if r.full(SeverityError) {
		return
	}
	r.append(Diagnostic{Severity: SeverityError, Line: at.Line, Column: at.Column, Field: field, Message: fmt.Sprintf(format, args...)})
}

// Misread reports a value that could not be read.
func (r *Report) Misread(field string, n *Node, format string, args ...any) {
	r.Skip(field)
	if r.full(SeverityError) {
		return
	}
	r.append(Diagnostic{
		Severity: SeverityError, Line: n.At.Line, Column: n.At.Column, Field: field, Value: Shorten(n.Raw), Message: fmt.Sprintf(format, args...),
	})
}

// Misfit reports a value of the wrong kind.
func (r *Report) Misfit(field string, n *Node, message string) {
	switch n.Kind {
	case Broken:
		r.Skip(field)
	case Null:
		r.Misread(field, n, "has no value: %s, or be left out", message)
	default:
		r.Misread(field, n, "%s", message)
	}
}

func (r *Report) found(severity Severity) *findings {
	if severity == SeverityError {
		return &r.errors
	}
	return &r.warnings
}

func (r *Report) append(d Diagnostic) {
	found := r.found(d.Severity)
	found.list = append(found.list, d)
}

// full counts a diagnostic that is one too many.
func (r *Report) full(severity Severity) bool {
	found := r.found(severity)
	if len(found.list) < maxFindings {
		return false
	}
	found.more++
	return true
}

// Skip has a field not checked: that it could not be read was reported, and what it lacks then is no mistake
// of its own.
func (r *Report) Skip(field string) {
	if r.unread == nil {
		r.unread, r.above = map[string]bool{}, map[string]bool{}
	}
	r.unread[field] = true
	for up := parent(field); up != ""; up = parent(up) {
		r.above[up] = true
	}
}

// Inherit notes that a field which the document leaves out takes the value of another.
func (r *Report) Inherit(field, from string) {
	if r.inherited == nil {
		r.inherited = map[string]string{}
	}
	r.inherited[field] = from
}

// Skipped reports whether the field, or what it stands in, could not be read.
func (r *Report) Skipped(field string) bool {
	for ; field != ""; field = parent(field) {
		if r.unread[field] {
			return true
		}
	}
	return false
}

// repeats reports whether the field has its value from another one that was reported.
func (r *Report) repeats(field string) bool {
	from := r.inherited[field]
	return from != "" && (r.Skipped(from) ||
		slices.ContainsFunc(r.errors.list, func(d Diagnostic) bool { return d.Field == from }))
}

// Whole reports whether the field and all that stands in it could be read.
func (r *Report) Whole(field string) bool { return !r.above[field] && !r.Skipped(field) }

// Written reports whether the document has the field: a zero in a config may stand for nothing.
func (r *Report) Written(field string) bool { return r.Node(field) != nil }

// Node is the value of a field; nil if the document does not have it.
func (r *Report) Node(field string) *Node {
	if r.root == nil {
		return nil
	}
	if n, exact := r.root.nodeAt(field); exact {
		return n
	}
	return nil
}

// ErrorCount is how many errors there are so far.
func (r *Report) ErrorCount() int {
	return len(r.errors.list) + r.errors.more
}

// Err is an [*Error] with all that is wrong, or nil.
func (r *Report) Err() error {
	if len(r.errors.list) == 0 {
		return nil
	}
	return &Error{Diagnostics: r.Errors()}
}

// Errors are all that is wrong, in the order of the document.
func (r *Report) Errors() []Diagnostic { return r.sorted(SeverityError) }

// Warnings are what is right and may surprise, in the order of the document.
func (r *Report) Warnings() []Diagnostic { return r.sorted(SeverityWarning) }

// sorted gives the diagnostics their places, and their order.
func (r *Report) sorted(severity Severity) []Diagnostic {
	found := r.found(severity)
	for i := range found.list {
		r.setPlace(&found.list[i])
	}
	found.list = InOrder(found.list)
	if found.more > 0 {
		last := found.list[len(found.list)-1]
		last.Field, last.Value, last.Message = "", "", fmt.Sprintf("and %d more, which are not listed", found.more)
		found.list, found.more = append(found.list, last), 0
	}
	return found.list
}

// InOrder sorts diagnostics by their places, and leaves one of those that say the same of one place: a value that an alias
// or a name stands for is read once for each.
func InOrder(list []Diagnostic) []Diagnostic {
	slices.SortStableFunc(list, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	seen := map[Diagnostic]bool{}
	return slices.DeleteFunc(list, func(d Diagnostic) bool {
		d.Field = d.Field[strings.LastIndexByte(d.Field, '.')+1:]
		again := d.Line > 0 && seen[d]
		seen[d] = true
		return again
	})
}

// Locate returns a diagnostic with the place of its field, and the value as the document writes it.
func (r *Report) Locate(d Diagnostic) Diagnostic {
	r.setPlace(&d)
	return d
}

// setPlace fills in where a diagnostic belongs, and how the document writes the value. A field that is not there
// is reported where it should stand.
func (r *Report) setPlace(d *Diagnostic) {
	d.File = r.file
	if d.Line > 0 || r.root == nil {
		return
	}
	n, exact := r.root.nodeAt(d.Field)
	d.Line, d.Column = n.At.Line, n.At.Column
	switch {
	case !exact:
		d.Value, d.Message = "", "is required; "+d.Message
	case n.Raw != "":
		d.Value = Shorten(n.Raw)
	}
}

// parent is the field that a field stands in; "" for the document.
func parent(field string) string {
	return field[:max(strings.LastIndexAny(field, ".["), 0)]
}

// valueText is a value as a diagnostic shows it; nil is a value that is not there.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return fmt.Sprintf("%q", Shorten(v))
	default:
		return Shorten(fmt.Sprint(v))
	}
}
