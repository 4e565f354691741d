// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package stagger_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWorkflows checks that actions are pinned by hash, each with its version; that jobs start with only read permission; that
// they have time limits; and that their scripts exist.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(".github/workflows/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%d workflows, %v", len(paths), err)
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, path := range paths {
		text := read(t, path)
		for _, uses := range regexp.MustCompile(`(?m)uses: (.*)$`).FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(uses[1]) {
				t.Errorf("%s: %s is not pinned by hash and version", path, uses[1])
			}
		}
		if !strings.Contains(text, "\npermissions:\n  contents: read\njobs:") && !strings.Contains(text, "\npermissions:\n  contents: read\nconcurrency:") {
			t.Errorf("%s: jobs may do more than read", path)
		}
		if jobs, limits := strings.Count(text, "runs-on:"), strings.Count(text, "timeout-minutes:"); jobs != limits {
			t.Errorf("%s: %d jobs, and %d limits of time", path, jobs, limits)
		}
		for _, script := range regexp.MustCompile(`\.ci/[\w-]+`).FindAllString(text, -1) {
			read(t, script)
		}
	}
}
