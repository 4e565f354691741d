// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
)

// shown is the progress of the day on a screen.
type shown interface {
	listener
	close()
}

func newProgress(out screen, who []contender, calls int) shown {
	if out.terminal {
		return newBars(out, who, calls)
	}
	return lines{out}
}

// lines is progress where nothing can move: one line for each phase.
type lines struct{ out screen }

func (l lines) enter(begin time.Duration, p phase) { l.out.printf("%s\n", headline(begin, p)) }
func (lines) ended(int, bool)                      {}
func (l lines) close()                             { l.out.printf("\n") }

func headline(begin time.Duration, p phase) string {
	return fmt.Sprintf("  %5.2f s  %s", begin.Seconds(), p.name)
}

// frequency is how often the bars move.
const frequency = 100 * time.Millisecond

// bars is progress on a terminal: a bar for each client's calls, and the phase above.
type bars struct {
	out      screen
	writer   progress.Writer
	trackers []*progress.Tracker
	done     chan struct{}
}

func newBars(out screen, who []contender, calls int) *bars {
	b := &bars{out: out, writer: progress.NewWriter(), done: make(chan struct{})}
	b.writer.SetOutputWriter(out)
	b.writer.SetMessageLength(12)
	b.writer.SetTrackerLength(50)
	b.writer.SetUpdateFrequency(frequency)
	b.writer.SetTrackerPosition(progress.PositionRight)
	b.writer.SetStyle(progress.StyleBlocks)
	b.writer.Style().Visibility.Time = false
	b.writer.Style().Visibility.ETA = false
	b.writer.Style().Options.Separator = " "
	b.writer.Style().Options.KeepTrackersTogether = true
	b.writer.SetSortBy(progress.SortByIndex)
	if out.colours {
		b.writer.Style().Colors = progress.StyleColorsExample
	}
	for i, c := range who {
		tracker := &progress.Tracker{Message: c.name, Total: int64(calls), Units: inCalls, Index: uint64(i)}
		b.trackers = append(b.trackers, tracker)
	}
	b.writer.AppendTrackers(b.trackers)
	go func() {
		defer close(b.done)
		b.writer.Render()
	}()
	return b
}

var inCalls = progress.Units{
	Notation: " calls", NotationPosition: progress.UnitsNotationPositionAfter,
	Formatter: func(n int64) string { return strconv.FormatInt(n, 10) },
}

func (b *bars) enter(begin time.Duration, p phase) { b.writer.SetPinnedMessages(headline(begin, p)) }
func (b *bars) ended(contender int, _ bool)        { b.trackers[contender].Increment(1) }

// close returns when nothing is drawn any more. A Stop that comes before Render has begun does
// nothing, so it is repeated.
func (b *bars) close() {
	again := time.NewTicker(frequency)
	defer again.Stop()
	for {
		b.writer.Stop()
		select {
		case <-b.done:
			b.out.printf("\n")
			return
		case <-again.C:
		}
	}
}
