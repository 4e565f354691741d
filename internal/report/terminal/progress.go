// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress is a bar that moves, with the time that is left. A nil Progress shows nothing. It may be used by several
// goroutines at once.
type Progress struct{ bar *progressbar.ProgressBar }

const progressSteps = 1000

// NewProgress is a bar on w; nil if w is no terminal.
func NewProgress(w io.Writer, title string) *Progress {
	if !Is(w) {
		return nil
	}
	return newProgress(w, title)
}

func newProgress(w io.Writer, title string) *Progress {
	return &Progress{progressbar.NewOptions(progressSteps, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond))}
}

// Title changes the text before the bar.
func (p *Progress) Title(title string) {
	if p != nil {
		p.bar.Describe(title)
	}
}

// Set moves the bar to the part that is done, 0 to 1.
func (p *Progress) Set(part float64) {
	if p != nil {
		_ = p.bar.Set(min(int(part*progressSteps), progressSteps-1)) // a bar that cannot be drawn is none
	}
}

// Clear takes the bar off the screen until it moves on.
func (p *Progress) Clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}
