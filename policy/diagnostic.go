// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a [Diagnostic] is.
type Severity uint8

// The severities.
const (
	SeverityError   Severity = iota // it is wrong, and refused
	SeverityWarning                 // it is right, and may surprise
	SeverityNote                    // it is worth knowing
)

// String is "error", "warning" or "note".
func (s Severity) String() string {
	switch s {
	case SeverityError:
		return "error"
	case SeverityWarning:
		return "warning"
	default:
		return "note"
	}
}

// MarshalText is [Severity.String], for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diagnostic is one thing that is to be said of a policy file. Parts that are not known are empty: a
// policy written in Go has no file and no lines.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`   // from 1
	Column   int      `json:"column,omitempty"` // from 1, in characters
	Field    string   `json:"field,omitempty"`  // "methodConfig[0].retryPolicy.maxAttempts"
	Value    string   `json:"value,omitempty"`  // as written
	Message  string   `json:"message"`          // what is wrong, and what would be right
}

// String is one line, without the severity: retry.yaml:7:22: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2.
func (p Diagnostic) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	for _, part := range []string{p.Field, p.Value} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error is all that is wrong with a policy, in the order of the file; of more than a thousand mistakes, the first
// ones and how many there are.
type Error struct {
	Diagnostics []Diagnostic
}

// Error lists the diagnostics, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// problems collects what a check finds. The zero value is ready for use, for a config without file.
type problems struct {
	*source

	severity Severity
	list     []Diagnostic
	more     int // that are not listed
}

// maxProblems is more than anybody reads. A file of a megabyte can have a hundred times as many.
const maxProblems = 1000

// full counts a problem that is one too many.
func (ps *problems) full() bool {
	if len(ps.list) < maxProblems {
		return false
	}
	ps.more++
	return true
}

// add reports that field has a value that is not right. One mistake makes one problem: a field
// that could not be read, or whose value is another's that was reported, is passed over.
func (ps *problems) add(field string, value any, format string, args ...any) {
	if ps.lost(field) || ps.repeats(field) || ps.full() {
		return
	}
	ps.list = append(ps.list, Diagnostic{Severity: ps.severity, Field: field, Value: valueText(value), Message: fmt.Sprintf(format, args...)})
}

// repeats reports whether field has its value from another one that was reported.
func (ps *problems) repeats(field string) bool {
	if ps.source == nil || ps.inherited[field] == "" {
		return false
	}
	from := ps.inherited[field]
	return ps.lost(from) || slices.ContainsFunc(ps.list, func(p Diagnostic) bool { return p.Field == from })
}

// at reports what the reading of a file finds, at a place of its own.
func (ps *problems) at(at position, field, format string, args ...any) {
	if ps.full() {
		return
	}
	ps.list = append(ps.list, Diagnostic{
		Severity: ps.severity, Line: at.line, Column: at.column, Field: field, Message: fmt.Sprintf(format, args...),
	})
}

// twice reports a key that stood before.
func (ps *problems) twice(at position, field string, first position) {
	ps.at(at, field, "stands twice, first at line %d, column %d; keep one", first.line, first.column)
}

// misread reports a value that could not be read.
func (ps *problems) misread(field string, n *node, format string, args ...any) {
	ps.lose(field)
	if ps.full() {
		return
	}
	ps.list = append(ps.list, Diagnostic{
		Severity: ps.severity, Line: n.at.line, Column: n.at.column, Field: field, Value: shorten(n.raw), Message: fmt.Sprintf(format, args...),
	})
}

// sorted returns the problems in the order of the file.
func (ps *problems) sorted() []Diagnostic {
	if ps.source != nil {
		for i := range ps.list {
			ps.place(&ps.list[i])
		}
	}
	slices.SortStableFunc(ps.list, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if ps.more > 0 {
		last := ps.list[len(ps.list)-1]
		last.Field, last.Value, last.Message = "", "", fmt.Sprintf("and %d more, which are not listed", ps.more)
		ps.list, ps.more = append(ps.list, last), 0
	}
	return ps.list
}

// err is nil if nothing was found.
func (ps *problems) err() error {
	if len(ps.list) == 0 {
		return nil
	}
	return &Error{Diagnostics: ps.sorted()}
}

// valueText is a value as an error shows it; nil is a value that is not there.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return fmt.Sprintf("%q", shorten(v))
	default:
		return shorten(fmt.Sprint(v))
	}
}
