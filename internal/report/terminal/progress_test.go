// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	t.Run("on a terminal", func(t *testing.T) {
		t.Parallel()
		_, terminal := open(t)
		if NewProgress(terminal, "a blip") == nil {
			t.Error("a terminal shows nothing")
		}
		for want, move := range map[string]func(*Progress){
			"a blip  50%":    func(p *Progress) { p.Set(0.5) },
			"a blip  99%":    func(p *Progress) { p.Set(1) }, // it is not for the bar to say that all is done
			"an outage   0%": func(p *Progress) { p.Title("an outage") },
		} {
			var text strings.Builder
			p := newProgress(&text, "a blip")
			move(p)
			p.Clear()
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in %q", want, text.String())
			}
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		t.Parallel()
		var text strings.Builder
		p := NewProgress(&text, "a blip")
		p.Set(0.5)
		p.Title("an outage")
		p.Clear()
		if p != nil || text.Len() > 0 {
			t.Errorf("it shows %q", text.String())
		}
	})
}
