// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/stagger-go/stagger/internal/document"
)

// Diagnostic is one thing that is to be said of a policy file. Its fields are Severity, File, Line and Column
// (both from 1), Field ("methodConfig[0].retryPolicy.maxAttempts"), Value (as written) and Message: what is
// wrong, and what would be right. Parts that are not known are empty: a policy written in Go has no file and no
// lines. String returns all of it but the severity, in one line.
type Diagnostic = document.Diagnostic

// Severity says how bad a [Diagnostic] is. String returns "error", "warning" or "note".
type Severity = document.Severity

// The severities.
const (
	SeverityError   = document.SeverityError   // it is wrong, and refused
	SeverityWarning = document.SeverityWarning // it is right, and may surprise
	SeverityNote    = document.SeverityNote    // it is worth knowing
)

// Error is all that is wrong with a policy: its field Diagnostics, in the order of the file; of more than a
// thousand mistakes, the first ones and how many there are. Its text has one line for each.
type Error = document.Error
