// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
)

// progress shows how the day goes: a bar on a terminal, else a line for each phase.
type progress struct {
	out   screen
	bar   *terminal.Progress // nil if out is no terminal
	calls int                // of all clients
	ended atomic.Int64
}

func newProgress(out screen, calls int) *progress {
	return &progress{out: out, bar: terminal.NewProgress(out.Writer, ""), calls: calls}
}

func (p *progress) enter(begin time.Duration, phase *sim.Phase) {
	headline := fmt.Sprintf("  %5.2f s  %s", begin.Seconds(), phase.Name)
	if p.bar == nil {
		p.out.printf("%s\n", headline)
	}
	p.bar.Title(headline)
}

func (p *progress) end(int) { p.bar.Set(float64(p.ended.Add(1)) / float64(p.calls)) }

func (p *progress) close() {
	p.bar.Clear()
	p.out.printf("\n")
}
