// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// screen is where the demo is shown.
type screen struct {
	io.Writer

	terminal bool // it can show progress that moves
	colours  bool
}

func newScreen(w io.Writer) screen {
	f, ok := w.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd()))
	return screen{Writer: w, terminal: terminal, colours: terminal && os.Getenv("NO_COLOR") == ""}
}

// printf prints; that nobody reads any more is no error of the demo.
func (s screen) printf(format string, values ...any) { _, _ = fmt.Fprintf(s, format, values...) }
