// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// open opens a terminal, and returns both of its ends.
func open(t *testing.T) (primary, terminal *os.File) {
	t.Helper()
	primary, terminal, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to open:", err)
	}
	t.Cleanup(func() {
		_ = primary.Close()
		_ = terminal.Close()
	})
	return primary, terminal
}

func TestStyleOf(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	_, terminal := open(t)
	if got := StyleOf(terminal).Error("no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("on a terminal %q", got)
	}
	if got := StyleOf(terminal).Faint(""); got != "" {
		t.Errorf("nothing becomes %q", got)
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := StyleOf(file).Error("no") + StyleOf(new(strings.Builder)).Success("yes"); got != "noyes" {
		t.Errorf("in a file and a buffer %q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := StyleOf(terminal).Error("no"); got != "no" {
		t.Errorf("with NO_COLOR %q", got)
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if got := StyleOf(terminal).Error("no"); got != "no" {
		t.Errorf("with TERM=dumb %q", got)
	}
}
