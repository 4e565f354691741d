// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// A test's program has modules of its own: here, this one's.
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
