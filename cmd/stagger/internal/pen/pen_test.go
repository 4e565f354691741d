// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pen

import (
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
)

func TestOnlyATerminalIsColoured(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	primary, terminal, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to open:", err)
	}
	defer primary.Close()
	defer terminal.Close()
	if got := For(terminal).Bad("no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("on a terminal %q", got)
	}
	if got := For(terminal).Faint(""); got != "" {
		t.Errorf("nothing becomes %q", got)
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := For(file).Bad("no") + For(new(strings.Builder)).Good("yes"); got != "noyes" {
		t.Errorf("in a file and a buffer %q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := For(terminal).Bad("no"); got != "no" {
		t.Errorf("with NO_COLOR %q", got)
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if got := For(terminal).Bad("no"); got != "no" {
		t.Errorf("with TERM=dumb %q", got)
	}
}
