// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// badFile is one case of testdata/bad: what a file says, and every word of what is said of it.
type badFile struct {
	name, text, want string
}

// badFiles reads the cases: "=== name", the file, "---", the problems under the file name f.
func badFiles(t testing.TB) []badFile {
	t.Helper()
	paths, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in testdata/bad: %v", err)
	}
	var files []badFile
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		topic := strings.TrimSuffix(filepath.Base(path), ".txt")
		for part := range strings.SplitSeq(strings.TrimPrefix(string(data), "=== "), "\n=== ") {
			name, rest, _ := strings.Cut(part, "\n")
			text, want, ok := strings.Cut("\n"+rest, "\n---\n")
			if !ok {
				t.Fatalf("%s: %s: no line ---", path, name)
			}
			text = strings.TrimPrefix(text+"\n", "\n")
			files = append(files, badFile{topic + "/" + name, text, strings.TrimSuffix(want, "\n")})
		}
	}
	return files
}

func TestBadFilesAreRefusedWithEveryMistakeOnce(t *testing.T) {
	t.Parallel()
	for _, row := range badFiles(t) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set, err := policy.Parse("f", []byte(row.text))
			if err == nil {
				t.Fatalf("Parse(\n%s) = nil; want\n%s", row.text, row.want)
			}
			if set != nil {
				t.Errorf("Parse returns a set beside the error %v", err)
			}
			if got := err.Error(); got != row.want {
				t.Errorf("Parse(\n%s) =\n%s\nwant\n%s", row.text, got, row.want)
			}
		})
	}
}
