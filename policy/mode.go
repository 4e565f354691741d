// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/stagger-go/stagger/internal/document"
)

// Mode says whether extra attempts are sent: retries, hedges and resumptions. "" means [ModeEnforce]. The values are in
// alphabetical order: the greater of two modes is the stricter.
type Mode string

// The modes.
const (
	ModeEnforce Mode = "ENFORCE" // they are sent
	ModeObserve Mode = "OBSERVE" // they aren't sent: the first one of each call is decided on, and observers receive the decision
	ModeOff     Mode = "OFF"     // they aren't sent
)

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
