// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// TestTheREADMEShowsWhatTheCommandsPrint runs every command that the README shows with its output, as
//
//	$ stagger …
//
// in the folder of the README, and compares.
func TestTheREADMEShowsWhatTheCommandsPrint(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for i, block := range strings.Split(string(readme), "```") {
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
			t.Errorf("the README shows of %q\n%s\nand it prints\n%s", args, want, out.String())
		}
	}
	if shown < 2 {
		t.Errorf("the README shows %d commands; want lint and explain", shown)
	}
}

// trimmed has no blanks at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
