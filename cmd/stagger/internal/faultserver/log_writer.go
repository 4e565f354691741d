// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"errors"
	"io"
	"time"
)

const (
	maxUnread  = 4096            // lines
	endTimeout = 2 * time.Second // for what is still unread
)

// lineWriter writes lines in a goroutine of its own, so that a program that does not read them holds up nothing.
type lineWriter struct {
	lines   chan string
	dropped int // lines that found no room
	done    chan error
}

func newLineWriter(to io.Writer) *lineWriter {
	w := &lineWriter{lines: make(chan string, maxUnread), done: make(chan error, 1)}
	go func() {
		var first error
		for line := range w.lines {
			if first == nil {
				_, first = io.WriteString(to, line)
			}
		}
		w.done <- first
	}()
	return w
}

func (w *lineWriter) write(line string) {
	select {
	case w.lines <- line:
	default:
		w.dropped++
	}
}

// end writes a last line, and waits a while until all have been written.
func (w *lineWriter) end(last string) error {
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	late := errors.New("the output is not read: what was seen is lost")
	select {
	case w.lines <- last:
	case <-timer.C:
		close(w.lines)
		return late
	}
	close(w.lines)
	select {
	case err := <-w.done:
		return err
	case <-timer.C:
		return late
	}
}
