// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"io"
	"os"
)

// Load reads the policy file at path; see [Parse] for its form and its problems. If the file cannot
// be read the error is that of package os, which errors.Is compares with fs.ErrNotExist. No more
// is read of a file than [Parse] takes.
func Load(path string) (*Set, error) {
	f, err := os.Open(path) //nolint:gosec // the path is the program's own
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}
