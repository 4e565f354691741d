// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package pen colours what a terminal shows, and nothing else.
package pen

import (
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Pen writes in colours; the zero Pen has none.
type Pen struct{ colours bool }

// For is the pen for a writer: it has colours if that is a terminal, unless NO_COLOR is set
// (https://no-color.org) or TERM is dumb.
func For(w io.Writer) Pen {
	f, ok := w.(*os.File)
	return Pen{ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Bad is for mistakes, and for what is not done.
func (p Pen) Bad(s string) string { return p.write(s, text.FgRed) }

// Doubtful is for warnings, and for what is done in part.
func (p Pen) Doubtful(s string) string { return p.write(s, text.FgYellow) }

// Good is for what is done.
func (p Pen) Good(s string) string { return p.write(s, text.FgGreen) }

// Title is for names of parts.
func (p Pen) Title(s string) string { return p.write(s, text.Bold) }

// Faint is for what matters less.
func (p Pen) Faint(s string) string { return p.write(s, text.Faint) }

func (p Pen) write(s string, c text.Color) string {
	if !p.colours || s == "" {
		return s
	}
	return text.Escape(s, c.EscapeSeq())
}
