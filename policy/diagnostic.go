// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/stagger-go/stagger/internal/document"
)

// Diagnostic is an error, a warning or a note on a policy file. Unknown parts are empty: a policy written in Go has no file and
// no lines.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`   // from 1
	Column   int      `json:"column,omitempty"` // from 1, in characters
	Field    string   `json:"field,omitempty"`  // "methodConfig[0].retryPolicy.maxAttempts"
	Value    string   `json:"value,omitempty"`  // as written
	Message  string   `json:"message"`          // the problem, and the remedy or the allowed values
}

// String returns one line, without the severity, such as
// retry.yaml:7:22: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2.
func (d Diagnostic) String() string { return d.forReport().String() }

// Severity is the severity of a [Diagnostic].
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // invalid: the file is refused
	SeverityWarning Severity = "warning" // valid, but possibly surprising
	SeverityNote    Severity = "note"    // worth knowing
)

// Error lists all errors in a policy, in the order of the file. If there are more than a thousand, it has the first ones and
// the total number.
type Error struct {
	Diagnostics []Diagnostic
}

// Error returns the diagnostics, one per line.
func (e *Error) Error() string { return document.Lines(e.Diagnostics) }

// refusal returns an [*Error] with the errors of a report, or nil.
func refusal(report *document.Report) error {
	if report.ErrorCount() == 0 {
		return nil
	}
	return &Error{diagnosed(report.Errors())}
}

// locate returns a diagnostic with the place of its field, and with the value as written in the file.
func locate(report *document.Report, d Diagnostic) Diagnostic {
	return fromReport(report.Locate(d.forReport()))
}

func diagnosed(list []document.Diagnostic) []Diagnostic {
	diagnostics := make([]Diagnostic, len(list))
	for i, d := range list {
		diagnostics[i] = fromReport(d)
	}
	return diagnostics
}

func fromReport(d document.Diagnostic) Diagnostic {
	return Diagnostic{Severity(d.Severity), d.File, d.Line, d.Column, d.Field, d.Value, d.Message}
}

func (d Diagnostic) forReport() document.Diagnostic {
	return document.Diagnostic{
		Severity: document.Severity(d.Severity), File: d.File, Line: d.Line, Column: d.Column, Field: d.Field, Value: d.Value, Message: d.Message,
	}
}
