// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// Parse parses a policy file: a gRPC service config, in JSON or YAML, with stagger's own keys as well (proto/stagger/policy/v1
// lists them all).
//
// file is the name for diagnostics. It is not opened, so data may be embedded in the program. If the name ends in ".json", or
// the text begins with "{", the format is JSON, otherwise YAML. The error is an [*Error] with all errors in the file, each with
// line and column, the value, and the allowed values. Parse never skips or rounds anything silently: unknown keys, duplicate
// keys, and numbers in quotes are errors, as in gRFC A6. A file has at most 1 MiB, 50,000 values and 32 levels.
//
// [Set.Warnings] has warnings on valid settings. Parse is safe for concurrent use, and keeps no reference to data.
func Parse(file string, data []byte) (*Set, error) {
	report := document.NewReport(file)
	set, err := compile(spec.Read(report, data), report)
	if err == nil {
		set.source, set.text, set.digest = file, string(data), sha256.Sum256(data)
	}
	return set, err
}

// Load reads the policy file at path; see [Parse] for its format and its errors. If the file can't be read, the error is that
// of package os, with the path, and works with errors.Is and fs.ErrNotExist. Load stops reading at the limit of [Parse], even
// for an endless device. It reads a pipe to its end, so that a shell's <(…) works.
func Load(path string) (*Set, error) {
	data, err := document.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}
