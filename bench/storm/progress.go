// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar that tells whoever sits before a terminal how long the storms still take. On
// anything else it is nil, and shows nothing.
type progress struct {
	bar  *progressbar.ProgressBar
	stop chan struct{}
	done sync.WaitGroup
}

// newProgress starts a bar on w, if it is a terminal, that moves on with the time.
func newProgress(w io.Writer, storms []storm, clients, beside int) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	p := &progress{
		bar: progressbar.NewOptions64(planned(storms, clients, beside).Milliseconds(),
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("storms"), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth()),
		stop: make(chan struct{}),
	}
	p.done.Go(p.run)
	return p
}

// planned is how long all storms take: each is played for some of the clients at a time.
func planned(storms []storm, clients, beside int) time.Duration {
	groups := (clients + beside - 1) / beside
	var sum time.Duration
	for _, s := range storms {
		sum += s.length()
	}
	return sum * time.Duration(groups)
}

func (p *progress) run() {
	start := time.Now()
	tick := time.NewTicker(500 * ms)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = p.bar.Set64(min(time.Since(start).Milliseconds(), p.bar.GetMax64()-1)) // a bar that cannot be drawn is none
		case <-p.stop:
			return
		}
	}
}

// clear takes the bar off the screen until it moves on.
func (p *progress) clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}

func (p *progress) end() {
	if p != nil {
		close(p.stop)
		p.done.Wait()
		_ = p.bar.Clear()
	}
}
