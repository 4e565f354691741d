// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// report has the diagnostics of one file.
type report struct {
	file        string
	diagnostics []policy.Diagnostic
	set         *methods.Set // nil if the file is invalid
}

// check lints a file for the services of known, independent of those linked into this program.
func check(c *cobra.Command, file string, known cli.API, otherClients bool) report {
	r := report{file: cli.FileName(file)}
	data, err := cli.ReadFile(c, file)
	if err != nil {
		r.diagnostics = unreadable(err)
		return r
	}
	r.diagnostics = lint.Lint(r.file, data, lint.Options{Descriptors: known.Only(), OtherClients: otherClients})
	if set, err := policy.Parse(r.file, data); err == nil { // errors are in the diagnostics
		r.set = methods.DescribeBy(set, known.Only())
	}
	return r
}

// unreadable returns why a file cannot be read, as one of its errors.
func unreadable(err error) []policy.Diagnostic {
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		return wrong.Diagnostics
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return []policy.Diagnostic{{Severity: document.SeverityError, File: at.Path, Message: "cannot be read: " + at.Err.Error()}}
	}
	return []policy.Diagnostic{{Severity: document.SeverityError, Message: "cannot be read: " + err.Error()}}
}
