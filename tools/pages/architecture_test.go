// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

// The table of ARCHITECTURE.md has each folder of Go code, and a folder imports only what stands below it.
func TestArchitecture_Packages(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	_, table, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for i, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(cells[1], -1) {
				rows[m[1]] = i
			}
		}
	}
	// row returns the row of a folder, or of the nearest one above it; 0: none.
	row := func(folder string) int {
		for folder != "." && rows[folder] == 0 {
			folder = filepath.Dir(folder)
		}
		return rows[folder]
	}
	checked := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		folder := filepath.Dir(path)
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || folder == "." {
			return nil
		}
		from := row(folder)
		if from == 0 {
			t.Errorf("ARCHITECTURE.md: the table has no row for %s", folder)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "github.com/stagger-go/stagger/")
			if !ours {
				continue
			}
			checked++
			if row(to) < from {
				t.Errorf("ARCHITECTURE.md: %s imports %s, which stands above it", path, to)
			}
		}
		return nil
	})
	if err != nil || checked < 100 {
		t.Errorf("%d imports checked: %v", checked, err)
	}
}

// The page says where each file of interceptor stands, and names no file that is gone.
func TestArchitecture_Files(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "## The files of `interceptor`\n")
	list, _, _ = strings.Cut(list, "\n## ")
	paths := testkit.Must(filepath.Glob("interceptor/*.go"))(t)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".go")
		if !strings.HasSuffix(name, "_test") && !strings.Contains(list, "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md doesn't say where %s.go stands", name)
		}
	}
	for _, m := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(list, -1) {
		if !slices.Contains(paths, "interceptor/"+m[1]+".go") {
			t.Errorf("ARCHITECTURE.md names interceptor/%s.go, which is not there", m[1])
		}
	}
}
