// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminal shows figures to whoever sits before a terminal: tables, charts, colours and progress. Anything
// else gets the same tables and charts as plain text, and no progress.
package terminal

import (
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style is the colours of a text; the zero Style has none.
type Style struct{ Colours bool }

// StyleOf is the style for a writer: it has colours if that is a terminal, unless NO_COLOR is set
// (https://no-color.org) or TERM is dumb.
func StyleOf(w io.Writer) Style {
	return Style{Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Error is for what is wrong, and for what is not done.
func (s Style) Error(words string) string { return s.write(words, text.FgRed) }

// Warning is for warnings, and for what is done in part.
func (s Style) Warning(words string) string { return s.write(words, text.FgYellow) }

// Success is for what is done.
func (s Style) Success(words string) string { return s.write(words, text.FgGreen) }

// Title is for names of parts.
func (s Style) Title(words string) string { return s.write(words, text.Bold) }

// Faint is for what matters less.
func (s Style) Faint(words string) string { return s.write(words, text.Faint) }

func (s Style) write(words string, c text.Color) string {
	if !s.Colours || words == "" {
		return words
	}
	return text.Escape(words, c.EscapeSeq())
}
