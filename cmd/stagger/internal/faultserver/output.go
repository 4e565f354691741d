// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"errors"
	"io"
	"time"
)

const (
	maxUnread = 4096            // lines
	patience  = 2 * time.Second // in the end
)

// output writes lines beside what goes on: a program that does not read them holds up nothing.
type output struct {
	lines chan string
	lost  int // lines that found no room
	done  chan error
}

func newOutput(to io.Writer) *output {
	o := &output{lines: make(chan string, maxUnread), done: make(chan error, 1)}
	go func() {
		var first error
		for line := range o.lines {
			if first == nil {
				_, first = io.WriteString(to, line)
			}
		}
		o.done <- first
	}()
	return o
}

func (o *output) write(line string) {
	select {
	case o.lines <- line:
	default:
		o.lost++
	}
}

// end writes a last line, and waits a while until all have been written.
func (o *output) end(last string) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	late := errors.New("the output is not read: what was seen is lost")
	select {
	case o.lines <- last:
	case <-timer.C:
		close(o.lines)
		return late
	}
	close(o.lines)
	select {
	case err := <-o.done:
		return err
	case <-timer.C:
		return late
	}
}
