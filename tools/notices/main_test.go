// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The program is another tool: it has modules of others, and ours, which its own licence covers.
func TestWrite(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "schema")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../schema").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out strings.Builder
	if err := write(t.Context(), &out, "../../LICENSE", []string{program, program}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"== stagger: LICENSE\n", "== google.golang.org/protobuf@v", ": PATENTS\n", "== Go " + runtime.Version() + ": LICENSE\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the notices lack %q", want)
		}
	}
	if strings.Contains(out.String(), "== "+ours) || strings.Count(out.String(), "== google.golang.org/protobuf@v") > 2 {
		t.Error("the notices have our own modules, or others twice")
	}
}

// A module without a licence is an error.
func TestWriteNotices(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var out strings.Builder
	if err := writeNotices(&out, "a.example/b@v1.0.0", folder); err == nil || !strings.Contains(err.Error(), "a.example/b@v1.0.0 has no licence") {
		t.Errorf("%v for a module without a licence", err)
	}
	for name, text := range map[string]string{"LICENSE.md": "do as you like\n", "NOTICE": "by b\n", "README.md": "no notice\n"} {
		if err := os.WriteFile(folder+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = "== a.example/b@v1.0.0: LICENSE.md\n\ndo as you like\n\n== a.example/b@v1.0.0: NOTICE\n\nby b\n\n"
	if err := writeNotices(&out, "a.example/b@v1.0.0", folder); err != nil || out.String() != want {
		t.Errorf("%q, %v; want %q", out.String(), err, want)
	}
}
