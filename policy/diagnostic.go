// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/stagger-go/stagger/internal/document"
)

// Diagnostic is one thing that is to be said of a policy file. Parts that are not known are empty: a policy
// written in Go has no file and no lines.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`   // from 1
	Column   int      `json:"column,omitempty"` // from 1, in characters
	Field    string   `json:"field,omitempty"`  // "methodConfig[0].retryPolicy.maxAttempts"
	Value    string   `json:"value,omitempty"`  // as written
	Message  string   `json:"message"`          // what is wrong, and what would be right
}

// String is one line, without the severity:
// retry.yaml:7:22: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2.
func (d Diagnostic) String() string { return d.forReport().String() }

// Severity says how bad a [Diagnostic] is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // it is wrong, and refused
	SeverityWarning Severity = "warning" // it is right, and may surprise
	SeverityNote    Severity = "note"    // it is worth knowing
)

// Error is all that is wrong with a policy, in the order of the file; of more than a thousand mistakes, the first ones
// and how many there are.
type Error struct {
	Diagnostics []Diagnostic
}

// Error lists the diagnostics, one a line.
func (e *Error) Error() string { return document.Lines(e.Diagnostics) }

// refusal is an [*Error] with the errors of a report, or nil.
func refusal(report *document.Report) error {
	if report.ErrorCount() == 0 {
		return nil
	}
	return &Error{diagnosed(report.Errors())}
}

// locate returns a diagnostic with the place of its field, and the value as the file writes it.
func locate(report *document.Report, d Diagnostic) Diagnostic {
	return fromReport(report.Locate(d.forReport()))
}

// inOrder is [document.InOrder].
func inOrder(list []Diagnostic) []Diagnostic {
	plain := make([]document.Diagnostic, len(list))
	for i, d := range list {
		plain[i] = d.forReport()
	}
	return diagnosed(document.InOrder(plain))
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
