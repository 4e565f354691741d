// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Load reads the policy file at path; see [Parse] for its form and its problems. If the file cannot
// be read the error is that of package os, which names the path, and which errors.Is compares with
// fs.ErrNotExist. No more is read than [Parse] takes, even of a device without end. A pipe is read
// to its end, so that a shell's <(…) can be loaded; one that nobody writes to is an error.
func Load(path string) (*Set, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// readFile reads a file, or just enough of it to know that it is too large.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|atOnce, 0) //nolint:gosec // the path is the program's own
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil || len(data) > 0 {
		return data, err
	}
	if info, err := f.Stat(); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("%s: is a pipe that nobody writes to", path)
	}
	return data, nil
}
