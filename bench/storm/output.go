// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// export writes the files that were asked for, and names them.
func export(out io.Writer, s settings, tallies []*tally) error {
	all := newFile(s.seed, tallies)
	page := newPage(s, tallies)
	return errors.Join(
		writeFile(out, s.html, page.WriteHTML),
		writeFile(out, s.csv, func(w io.Writer) error { return writeCSV(w, all) }),
		writeFile(out, s.json, func(w io.Writer) error { return writeJSON(w, all) }),
	)
}

// writeFile writes a file, in a folder that is made if it is missing.
func writeFile(out io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.Create(path) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	printf(out, "written: %s\n", path)
	return nil
}
