// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Report collects the findings about one document. The zero value is for a config written in Go, in which every field was
// read and none has a position. It is not safe for concurrent use.
//
// One mistake makes one diagnostic: an unreadable field isn't checked, nor is a field that takes its value from one that was
// reported.
type Report struct {
	// Elsewhere returns a hint on a key that an object doesn't have, or "".
	Elsewhere func(key string) string
	// Foreign returns the names that this document has for another library's key, and ForeignHint the end of the remedy.
	Foreign     func(key string) (names []string)
	ForeignHint func(key string, value *Node) string

	file string
	root *Node // nil without a document

	errors, warnings findings

	unread map[string]bool // fields that are not checked
	above  map[string]bool // fields that contain one of those
}

// findings are the diagnostics of one severity.
type findings struct {
	list []Diagnostic
	more int // not listed
}

func (f *findings) add(d Diagnostic, format string, args ...any) {
	if len(f.list) == maxFindings {
		f.more++
		return
	}
	d.Message = fmt.Sprintf(format, args...)
	f.list = append(f.list, d)
}

// maxFindings is more than a reader needs. A document of a megabyte can have a hundred times as many.
const maxFindings = 1000

// NewReport returns a report on a document with the name file.
func NewReport(file string) *Report { return &Report{file: file} }

// Errorf reports an invalid value of a field. A nil value is not shown.
func (r *Report) Errorf(field string, value any, format string, args ...any) {
	if !r.Skipped(field) {
		r.errors.add(Diagnostic{Severity: SeverityError, Field: field, Value: valueText(field, value)}, format, args...)
	}
}

// Warnf reports a value of a field that may surprise. A nil value is not shown.
func (r *Report) Warnf(field string, value any, format string, args ...any) {
	if !r.Skipped(field) {
		r.warnings.add(Diagnostic{Severity: SeverityWarning, Field: field, Value: valueText(field, value)}, format, args...)
	}
}

// ErrorAt reports an error at a position, such as that of a key.
func (r *Report) ErrorAt(at Position, field, format string, args ...any) {
	r.errors.add(Diagnostic{Severity: SeverityError, Line: at.Line, Column: at.Column, Field: field}, format, args...)
}

// Misread reports an unreadable value.
func (r *Report) Misread(field string, n *Node, format string, args ...any) {
	r.Skip(field)
	d := Diagnostic{Severity: SeverityError, Line: n.At.Line, Column: n.At.Column, Field: field, Value: shortValue(field, n.Raw)}
	r.errors.add(d, format, args...)
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

// Skip excludes a field from checks. It was reported as unreadable, or takes the value of another field, so it is not another mistake.
func (r *Report) Skip(field string) {
	if r.unread == nil {
		r.unread, r.above = map[string]bool{}, map[string]bool{}
	}
	r.unread[field] = true
	for up := parent(field); up != ""; up = parent(up) {
		r.above[up] = true
	}
}

// Skipped reports whether the field, or one that contains it, is excluded.
func (r *Report) Skipped(field string) bool {
	for ; field != ""; field = parent(field) {
		if r.unread[field] {
			return true
		}
	}
	return false
}

// Whole reports whether the field and all fields in it were readable.
func (r *Report) Whole(field string) bool { return !r.above[field] && !r.Skipped(field) }

// Written reports whether the document has the field: a zero in a config may mean that it is absent.
func (r *Report) Written(field string) bool { return r.Node(field) != nil }

// Either returns the one of two fields with the same meaning that the document has, or the first.
func (r *Report) Either(field, other string) string {
	if r.Written(other) && !r.Written(field) {
		return other
	}
	return field
}

// Node returns the value of a field, or nil if the document does not have it.
func (r *Report) Node(field string) *Node {
	if r.root == nil {
		return nil
	}
	if n, path := r.root.nodeAt(field); path == field {
		return n
	}
	return nil
}

// ErrorCount returns the number of errors so far.
func (r *Report) ErrorCount() int {
	return len(r.errors.list) + r.errors.more
}

// Err returns an [*Error] with all errors, or nil.
func (r *Report) Err() error {
	if len(r.errors.list) == 0 {
		return nil
	}
	return &Error{Diagnostics: r.Errors()}
}

// Errors returns the errors, in the order of the document.
func (r *Report) Errors() []Diagnostic { return r.sorted(&r.errors) }

// Warnings returns the warnings, in the order of the document.
func (r *Report) Warnings() []Diagnostic { return r.sorted(&r.warnings) }

// sorted returns diagnostics with their positions, in order.
func (r *Report) sorted(found *findings) []Diagnostic {
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

// InOrder sorts diagnostics by position and removes duplicates: a value behind an alias or a name is read once for each use.
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

// Locate returns a diagnostic with the position of its field, and the value as written.
func (r *Report) Locate(d Diagnostic) Diagnostic {
	r.setPlace(&d)
	return d
}

// setPlace sets the position and the written value of a diagnostic. If the field is missing, an error says so where it is expected;
// a warning or a note is placed at what contains the field.
func (r *Report) setPlace(d *Diagnostic) {
	d.File = r.file
	if d.Line > 0 || r.root == nil {
		return
	}
	n, path := r.root.nodeAt(d.Field)
	d.Line, d.Column = n.At.Line, n.At.Column
	switch {
	case path == d.Field && n.Raw != "":
		d.Value = shortValue(d.Field, n.Raw)
	case path == d.Field:
	case d.Severity == SeverityError:
		d.Value, d.Message = "", "is required; "+d.Message
	default:
		d.Field = path
	}
}

// parent returns the field that contains a field; "" for the document.
func parent(field string) string {
	return field[:max(strings.LastIndexAny(field, ".["), 0)]
}

// valueText returns a field's value as diagnostics show it; nil means that it is absent.
func valueText(field string, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return fmt.Sprintf("%q", shortValue(field, v))
	default:
		return shortValue(field, fmt.Sprint(v))
	}
}

// shortValue shortens a field's value, but no name of a service or method.
func shortValue(field, text string) string {
	if key := field[strings.LastIndexByte(field, '.')+1:]; key == "service" || key == "method" || strings.HasPrefix(key, "name[") {
		return ShortenName(text)
	}
	return Shorten(text)
}
