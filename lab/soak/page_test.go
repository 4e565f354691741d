// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/codename"
)

// page has the results, for one page.
type page struct {
	options options
	world   *world
	samples []sample
}

// failed reports whether there were errors.
func (p *page) failed() bool { return len(p.world.lines()) > 0 }

const preface = `# Evidence: a soak

` + "`make soak`" + ` wrote this page after a run of a Retrier over loopback under the race detector, with faults of all kinds. Three
servers fail, hang, cut connections, send GOAWAY and go away. Policies and budgets of every kind change, by file and by
` + "`Reload`" + `, and some changes are invalid. Modes are switched; connections and Retriers are replaced while calls use them. Calls of all
kinds are cancelled and have deadlines. The soak checks every answer: it comes from one attempt and belongs to its call, messages are
in order, no call exceeds its number of attempts, and ` + "`CreateOrder`" + `, which is not declared idempotent, is sent once. At the end, waiting calls,
permits, balances, admission, goroutines and memory are where they began.

`

// markdown returns the page as Markdown.
func (p *page) markdown() string { return preface + "```text\n" + p.String() + "```\n" }

// String returns the page as text.
func (p *page) String() string {
	var b strings.Builder
	w := p.world
	fmt.Fprintf(&b, "%v of chaos, %d callers, seed %d, %s\n\n", p.options.length, p.options.callers, p.options.seed, runtime.Version())
	fmt.Fprintf(&b, "%d calls, %d extra attempts; ", w.counts.total(), w.extra.Load())
	fmt.Fprintf(&b, "policies changed %d times and were refused %d times, %d connections and %d Retriers replaced\n",
		w.events[eventReload].Load(), w.events[eventRefused].Load(), w.events[eventConn].Load(), w.events[eventRetrier].Load())
	for _, code := range slices.Sorted(maps.Keys(w.counts.by)) {
		fmt.Fprintf(&b, "  %-20s %8d\n", codename.Of(code), w.counts.by[code])
	}
	fmt.Fprintf(&b, "\n%10s %10s %11s %10s\n", "after", "calls", "goroutines", "heap, KiB")
	for i, s := range p.samples {
		at := s.at.Round(time.Second / 10).String()
		if i == len(p.samples)-1 {
			at = "at the end"
		}
		fmt.Fprintf(&b, "%10s %10d %11d %10d\n", at, s.calls, s.goroutines, s.heap>>10)
	}
	b.WriteByte('\n')
	for _, line := range w.lines() {
		fmt.Fprintf(&b, "WRONG: %s\n", line)
	}
	if !p.failed() {
		b.WriteString("Nothing was wrong: every call ended in time with one answer, within its attempts, and left nothing behind.\n")
	}
	return b.String()
}
