// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Under the race detector it would take ten times as long, and say nothing else.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What docs/overload.md shows is what the code does now.
func TestDocsAreCurrent(t *testing.T) {
	t.Parallel()
	fresh := t.TempDir()
	if err := run(t.Context(), "../..", fresh); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join("..", "..", "docs", "overload")
	files, err := os.ReadDir(fresh)
	if err != nil || len(files) != 2*len(pictures)+1 {
		t.Fatalf("%d files, %v; want %d", len(files), err, 2*len(pictures)+1)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(fresh, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(kept, f.Name())); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/overload/%s is not what make overload writes (%v): run it and commit", f.Name(), err)
		}
	}
}
