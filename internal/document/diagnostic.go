// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"strings"
)

// Severity says how bad a [Diagnostic] is.
type Severity uint8

// The severities.
const (
	SeverityError   Severity = iota + 1 // it is wrong, and refused
	SeverityWarning                     // it is right, and may surprise
	SeverityNote                        // it is worth knowing
)

// Diagnostic is one thing that is to be said of a document. Parts that are not known are empty: a config
// that was written in Go has no file and no lines.
type Diagnostic struct {
	Severity Severity
	File     string
	Line     int    // from 1
	Column   int    // from 1, in characters
	Field    string // "methodConfig[0].retryPolicy.maxAttempts"
	Value    string // as written
	Message  string // what is wrong, and what would be right
}

// String is one line, without the severity:
// retry.yaml:7:22: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File + ":")
	}
	if d.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", d.Line, d.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	for _, part := range []string{d.Field, d.Value} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(d.Message)
	return b.String()
}

// Error is all that is wrong with a document, in its order; of more than a thousand mistakes, the first ones
// and how many there are.
type Error struct {
	Diagnostics []Diagnostic
}

// Error lists the diagnostics, one a line.
func (e *Error) Error() string { return Lines(e.Diagnostics) }

// Lines lists values, one a line.
func Lines[T fmt.Stringer](list []T) string {
	lines := make([]string, len(list))
	for i, v := range list {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}
