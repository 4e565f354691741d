// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

const tooLarge = ": is larger than 1048576 bytes (1 MiB)"

func TestLoadTooLarge(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "big.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(10 << 30); err != nil { // sparse
		t.Fatal(err)
	}
	f.Close()
	if _, err := policy.Load(path); err == nil || err.Error() != path+tooLarge {
		t.Errorf("Load = %v; want %s", err, path+tooLarge)
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for path, want := range map[string]string{
		folder:                             "read " + folder + ": is a directory",
		filepath.Join(folder, "none.yaml"): "open " + filepath.Join(folder, "none.yaml") + ": no such file or directory",
	} {
		if runtime.GOOS == "windows" {
			want = "" // the system's own text
		}
		set, err := policy.Load(path)
		if set != nil || err == nil || want != "" && err.Error() != want {
			t.Errorf("Load(%s) = %v, %v; want %s", path, set, err, want)
		}
	}
	if _, err := policy.Load(filepath.Join(folder, "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load = %v; want fs.ErrNotExist", err)
	}
}
