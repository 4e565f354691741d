// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

// README and docs show commands with their output, as
//
//	$ stagger …
//
// which are run in the root of the repository, and compared.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	t.Chdir("../..")
	pages := testkit.Must(filepath.Glob("docs/*.md"))(t)
	shown := 0
	for _, page := range append(pages, "README.md") {
		text := testkit.Must(os.ReadFile(page))(t)
		shown += compare(t, page, string(text))
	}
	if shown < 2 {
		t.Errorf("the pages show %d commands; want 2 or more", shown)
	}
}

// docs/evidence/storms.md shows the first table of "stagger demo" as it is printed.
func TestPagesShowWhatCommandsPrint_Demo(t *testing.T) {
	t.Parallel()
	page := string(testkit.Must(os.ReadFile("../../docs/evidence/storms.md"))(t))
	_, shown, found := strings.Cut(page, "<!-- demo -->\n```text\n")
	shown, _, ended := strings.Cut(shown, "\n```\n<!-- /demo -->")
	var out strings.Builder
	c := command()
	c.SetArgs([]string{"demo"})
	c.SetOut(&out)
	testkit.NoError(t, c.Execute())
	if !found || !ended || !strings.Contains(out.String(), "\n\n"+shown+"\n") {
		t.Errorf("docs/evidence/storms.md shows between <!-- demo --> and <!-- /demo -->\n%s\nand make demo prints\n%s", shown, out.String())
	}
}

// The demo's policy is the one that the README shows.
func TestPagesShowWhatCommandsPrint_DemoPolicy(t *testing.T) {
	t.Parallel()
	policy := string(testkit.Must(os.ReadFile("internal/demo/retry.yaml"))(t))
	if readme := string(testkit.Must(os.ReadFile("../../README.md"))(t)); !strings.Contains(readme, "```yaml\n"+policy+"```\n") {
		t.Errorf("README.md has not this retry.yaml, which the demo follows:\n%s", policy)
	}
}

// A block of text whose fence names a command is a part of what that prints.
func TestPagesShowWhatCommandsPrint_Parts(t *testing.T) {
	t.Parallel()
	pages, shown := testkit.Must(filepath.Glob("../../docs/*.md"))(t), 0
	for _, page := range pages {
		for _, block := range strings.Split(string(testkit.Must(os.ReadFile(page))(t)), "\n```text part of: stagger ")[1:] {
			line, part, _ := strings.Cut(block, "\n")
			part, _, _ = strings.Cut(part, "\n```")
			var out strings.Builder
			c := command()
			c.SetArgs(strings.Fields(line))
			c.SetOut(&out)
			testkit.NoError(t, c.Execute())
			shown++
			if !strings.Contains(trimmed(out.String()), part) {
				t.Errorf("%s shows of %q\n%s\nand it prints\n%s", page, line, part, out.String())
			}
		}
	}
	if shown < 3 {
		t.Errorf("the pages show %d parts; want 3 or more", shown)
	}
}

// compare runs the commands on a page, and returns their number.
func compare(t *testing.T, page, text string) (shown int) {
	t.Helper()
	for i, block := range strings.Split(text, "```") {
		line, want, _ := strings.Cut(strings.TrimPrefix(block, "console\n"), "\n")
		args, ok := strings.CutPrefix(line, "$ stagger ")
		if i%2 == 0 || !ok {
			continue
		}
		shown++
		var out strings.Builder
		c := command()
		c.SetArgs(strings.Fields(args))
		c.SetOut(&out)
		c.SetErr(&out)
		if err := c.Execute(); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		if trimmed(out.String()) != trimmed(want) {
			t.Errorf("%s shows of %q\n%s\nand it prints\n%s", page, args, want, out.String())
		}
	}
	return shown
}

// trimmed returns a text without blanks at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
