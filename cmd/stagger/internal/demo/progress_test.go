// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestWithoutATerminalEachPhaseIsALine(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	p := newProgress(screen{Writer: &text}, nil, 0)
	p.enter(3150*ms, phase{name: "a blip"})
	p.ended(0, true)
	p.close()
	if got := text.String(); got != "   3.15 s  a blip\n\n" {
		t.Errorf("%q; want one line for the phase", got)
	}
}

func TestBarsEndWheneverTheyAreClosed(t *testing.T) {
	t.Parallel()
	who := []contender{{name: "a client"}}
	var text bytes.Buffer
	newProgress(screen{Writer: &text, terminal: true}, who, 10).close() // perhaps before the first is drawn

	text.Reset()
	p := newProgress(screen{Writer: &text, terminal: true}, who, 10)
	p.enter(time.Second, phase{name: "a blip"})
	p.ended(0, true)
	p.close()
	for _, want := range []string{"a client", "a blip", "1 calls"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the bars lack %q: %q", want, text.String())
		}
	}
}
