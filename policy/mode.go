// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/document"
)

// Mode says whether extra attempts are sent: retries, hedges and resumptions. "" means [ModeEnforce].
type Mode string

// The modes, each stricter than the one before.
const (
	ModeEnforce Mode = "ENFORCE" // they are sent
	ModeObserve Mode = "OBSERVE" // they aren't sent: the first one of each call is decided on, and observers receive the decision
	ModeOff     Mode = "OFF"     // they aren't sent
)

// StrictestMode returns the strictest of modes that apply to one call: [ModeOff] before [ModeObserve] before [ModeEnforce].
func StrictestMode(of ...Mode) Mode {
	strictest := ModeEnforce
	for _, m := range of {
		if slices.Index(modes, m) > slices.Index(modes, strictest) {
			strictest = m
		}
	}
	return strictest
}

// readMode reads a mode. Tools that read YAML 1.1, such as Helm, take OFF for a boolean and write false: somebody who wants retries
// off must get that.
func readMode(f *document.Fields, to *Mode) {
	n, path := f.Value("mode")
	if n != nil && (n.Kind == document.Bool || n.Kind == document.Text) && strings.EqualFold(n.Text, "false") {
		*to = ModeOff
		f.Warnf(path, n.Text, `is taken as OFF, which tools that read YAML 1.1, such as Helm, turn into false; write "OFF" in quotes`)
		return
	}
	document.Word(f, "mode", to, modes...)
}
