// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const header = "// Copyright 2026 The stagger Authors\n// SPDX-License-Identifier: Apache-2.0\n\n"

// The marker that the go command itself looks for.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func hasHeader(source []byte) bool {
	return generated.Match(source) || bytes.HasPrefix(source, []byte(header))
}

func TestEveryGoFileBeginsWithTheLicenceHeader(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		files++
		source, err := os.ReadFile(path)
		if err == nil && !hasHeader(source) {
			t.Errorf("%s: does not begin with the two header lines and an empty line; want\n%s", path, header)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 2 {
		t.Errorf("found %d Go files; want this one and the library's", files)
	}
}
