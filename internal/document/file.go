// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadFile reads a file, or just enough of it to know that it is too large: even a device without end can be
// named. A pipe is read to its end, so that a shell's <(…) can be read; one that nobody writes to is an error.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|atOnce, 0)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f)
	return data, cmp.Or(err, f.Close())
}

func readAll(f *os.File) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil || len(data) > 0 {
		return data, err
	}
	if info, err := f.Stat(); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("%s: is a pipe that nobody writes to", f.Name())
	}
	return data, nil
}
