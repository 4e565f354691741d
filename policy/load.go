// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"io"
	"io/fs"

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

// LoadFS reads the policy file at path in fsys, as [Load] does: in an [embed.FS], for one that is part of the
// program. No more is read than [Parse] takes.
func LoadFS(fsys fs.FS, path string) (*Set, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, document.MaxBytes+1))
	if err := cmp.Or(err, f.Close()); err != nil {
		return nil, err
	}
	return Parse(path, data)
}
