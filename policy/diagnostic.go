// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/stagger-go/stagger/internal/policyfile/document"

// Diagnostic is an error, a warning or a note on a policy file: its Severity ("error", "warning", "note"), File, Line and Column (from 1),
// Field ("methodConfig[0].retryPolicy.maxAttempts"), Value as written, and a Message with the problem and the remedy. Unknown parts are
// empty: a warning of a running Retrier has no file and no line. String returns one line, without the severity, such as retry.yaml:7:22:
// methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2.
type Diagnostic = document.Diagnostic

// Error lists all errors in a policy, its Diagnostics, in the order of the file. If there are more than a thousand, it has the
// first ones and the total number. Error returns them, one per line.
type Error = document.Error
