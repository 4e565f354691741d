// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/stagger-go/stagger/internal/document"
)

// Load reads the policy file at path; see [Parse] for its form and its errors. If the file cannot
// be read the error is that of package os, which names the path, and which errors.Is compares with
// fs.ErrNotExist. No more is read than [Parse] takes, even of a device without end. A pipe is read
// to its end, so that a shell's <(…) can be loaded; one that nobody writes to is an error.
func Load(path string) (*Set, error) {
	data, err := document.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}
