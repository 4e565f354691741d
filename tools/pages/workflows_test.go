// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
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
		for _, script := range regexp.MustCompile(`tools/ci/[\w-]+|\.ci/run`).FindAllString(text, -1) {
			read(t, script)
		}
	}
}

// What .ci/run ends with passes in a clean clone, also beside files that .gitignore names, and names each file that is not as
// committed.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := read(t, "tools/ci/unchanged")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, name)
		testkit.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	run := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = folder
		out, err := c.CombinedOutput()
		return string(out), err
	}
	git := func(args ...string) {
		t.Helper()
		if out, err := run("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"}, args...)...); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	write("tools/ci/unchanged", script)
	write(".gitignore", "/.tmp/\n")
	write("go.work.sum", "one\n")
	write("gone", "")
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "all")
	write(".tmp/built", "")
	if out, err := run("bash", "tools/ci/unchanged"); err != nil || out != "" {
		t.Errorf("%v, %q; want a clean clone to pass", err, out)
	}
	write("go.work.sum", "one\ntwo\n")
	write("docs/new/page.md", "")
	testkit.NoError(t, os.Remove(filepath.Join(folder, "gone")))
	out, err := run("bash", "tools/ci/unchanged")
	for _, line := range []string{" M go.work.sum", "?? docs/new/page.md", " D gone"} {
		if err == nil || !strings.Contains(out, line+"\n") {
			t.Errorf("%v, %q; want a failure that names %q", err, out, line)
		}
	}
	if steps := regexp.MustCompile(`(?m)^tools/ci/steps .* unchanged$`); !steps.MatchString(read(t, ".ci/run")) {
		t.Error("the last step of .ci/run is another one")
	}
}

// The lists of tests in the Makefile name tests that there are, and make test plays those that are built without the race detector only.
func TestMakefile_Tests(t *testing.T) {
	t.Parallel()
	var tests, alone strings.Builder
	testkit.NoError(t, filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, name := range regexp.MustCompile(`(?m)^func ((Test|Fuzz)\w+)\(`).FindAllStringSubmatch(read(t, path), -1) {
				tests.WriteString(name[1] + "\n")
				if strings.Contains(read(t, path), "\n//go:build !race\n") && !strings.HasPrefix(path, "lab/") {
					alone.WriteString(name[1] + "\n")
				}
			}
		}
		return err
	}))
	named := 0
	var figures []string
	for _, list := range regexp.MustCompile(`(?m)^(FIGURES|GRIDS|STORMS) +:= (.*)$`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		for name := range strings.SplitSeq(strings.ReplaceAll(list[2], "$$", "$"), "|") {
			if strings.HasPrefix(name, "$(") {
				continue
			}
			named++
			if list[1] == "FIGURES" {
				figures = append(figures, name)
			}
			if !regexp.MustCompile("(?m)" + name).MatchString(tests.String()) {
				t.Errorf("the Makefile names %s, and no test has that in its name", name)
			}
		}
	}
	played := regexp.MustCompile(strings.Join(figures, "|"))
	for name := range strings.FieldsSeq(alone.String()) {
		if !played.MatchString(name) {
			t.Errorf("%s is not built with the race detector, and FIGURES of the Makefile doesn't name it", name)
		}
	}
	if named < 30 {
		t.Errorf("%d tests are named; there are more", named)
	}
}
