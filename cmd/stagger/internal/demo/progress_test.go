// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"testing"

	"github.com/stagger-go/stagger/internal/sim"
)

func TestProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	p := newProgress(screen{Writer: &text}, 2)
	p.enter(3150*ms, &sim.Phase{Name: "blip: every backend fails"})
	p.end(0)
	p.close()
	if got := text.String(); got != "   3.15 s  blip: every backend fails\n\n" {
		t.Errorf("%q; want one line for the phase", got)
	}
}
