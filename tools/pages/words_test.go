// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

var (
	otherVerbs = regexp.MustCompile(`(?i)den(y|ie[sd]|ial)|reject`)
	// Names and messages of gRPC, HAProxy.
	foreignNames = regexp.MustCompile(`PERMISSION_DENIED|PermissionDenied|http-request deny deny_status|rejecting requests`)
)

// The project has one verb for a refusal: refuse. It stands in names of code, metrics and alerts, in messages and on pages.
func TestWords_Refuse(t *testing.T) {
	t.Parallel()
	files := 0
	testkit.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != "." && strings.HasPrefix(entry.Name(), ".")
		if entry.IsDir() && (hidden || entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		kinds := []string{".go", ".md", ".proto", ".yaml", ".html", ".css", ".json", ".txt"}
		if entry.IsDir() || hidden || entry.Name() == "words_test.go" || !slices.Contains(kinds, filepath.Ext(path)) {
			return nil
		}
		files++
		number := 0
		for line := range strings.Lines(read(t, path)) {
			number++
			if word := otherVerbs.FindString(foreignNames.ReplaceAllString(line, "")); word != "" {
				t.Errorf("%s:%d: %q: the verb is refuse: %s", path, number, word, line)
			}
		}
		return nil
	}))
	if files < 500 {
		t.Errorf("%d files; want 500 or more", files)
	}
	for text, want := range map[string]string{"budgetDenied": "Denied", "is rejected": "reject", "a denial": "denial", "identifier, forbidden, refused": ""} {
		if got := otherVerbs.FindString(text); got != want {
			t.Errorf("%s: found %q; want %q", text, got, want)
		}
	}
}
