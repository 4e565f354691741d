// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
)

const (
	// troubleInterval is the time for which attempts are counted after a slow or failed one, before the line that names the backends.
	troubleInterval = time.Minute
	// leastTroubled and troubledPart are how many attempts at a backend are slow, or failed, if the line names it: fewer are what a hedging
	// delay expects.
	leastTroubled = 3
	troubledPart  = 5 // more than one in so many
	// maxNamed bounds the backends in a line, and maxBackends those that are counted: pods come and go.
	maxNamed    = 3
	maxBackends = 1000
)

// backend is the address that gRPC names, of a target.
type backend struct{ target, address string }

// trouble counts attempts by backend for a minute, from a slow or failed one on. While none is, an attempt costs one load.
type trouble struct {
	counting atomic.Bool

	mu       sync.Mutex // guards all below
	backends map[backend]*attemptCounts
}

// attemptCounts are the attempts at a backend. A slow attempt that fails counts as slow.
type attemptCounts struct {
	all, slow int
	failed    map[codes.Code]int
}

// troubledAttempts returns how many of the attempts at a backend were in trouble, and a word about them, or "".
type troubledAttempts func(*attemptCounts) (n int, detail string)

func slowAttempts(c *attemptCounts) (n int, detail string) { return c.slow, "" }

// failedAttempts returns the failed attempts, and the code of most of them.
func failedAttempts(c *attemptCounts) (n int, detail string) {
	var most codes.Code
	for code, of := range c.failed {
		n += of
		if of > c.failed[most] || of == c.failed[most] && code < most {
			most = code
		}
	}
	return n, " (" + codename.Of(most) + ")"
}

// attempt counts an attempt that has ended. The first one that is slow or has failed begins a minute. A quiet watch that its call's deadline
// has ended, which isn't slow, says nothing of its backend.
func (l *logger) attempt(ctx context.Context, e interceptor.Event) {
	s := &l.trouble
	quiet := e.Code == codes.DeadlineExceeded && endedByDeadline(ctx, e)
	failed := !e.SlowAttempt && !quiet && !answersRequest(e.Code)
	if e.Peer == nil || !e.SlowAttempt && !failed && !s.counting.Load() {
		return
	}
	of := backend{e.Target, e.Peer.String()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backends == nil {
		s.backends = map[backend]*attemptCounts{}
		s.counting.Store(true)
		time.AfterFunc(troubleInterval, l.writeTrouble)
	}
	if s.backends[of] == nil && len(s.backends) >= maxBackends {
		of.address = others
	}
	counts := s.backends[of]
	if counts == nil {
		counts = &attemptCounts{failed: map[codes.Code]int{}}
		s.backends[of] = counts
	}
	counts.all++
	if e.SlowAttempt {
		counts.slow++
	}
	if failed {
		counts.failed[e.Code]++
	}
}

// endedByDeadline reports whether an attempt has ended at its call's deadline. The server knows it as well, by its own clock: its error comes
// within a fiftieth of the time.
func endedByDeadline(ctx context.Context, e interceptor.Event) bool {
	deadline, limited := ctx.Deadline()
	return limited && time.Until(deadline) <= e.Elapsed/50
}

// writeTrouble ends the minute, and writes a line for each target with slow backends, and one for each with failing ones.
func (l *logger) writeTrouble() {
	s := &l.trouble
	s.mu.Lock()
	all := s.backends
	s.backends = nil
	s.counting.Store(false)
	s.mu.Unlock()
	targets := map[string][]backend{}
	for b := range all {
		targets[b.target] = append(targets[b.target], b)
	}
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		for _, text := range []string{
			describeTrouble("were slow", targets[target], all, slowAttempts),
			describeTrouble("failed", targets[target], all, failedAttempts),
		} {
			if text != "" {
				l.write(context.Background(), slog.LevelWarn, "stagger: "+text, "target", target)
			}
		}
	}
}

// describeTrouble returns at which of a target's backends attempts were slow, or failed, the worst ones first, or "".
func describeTrouble(what string, backends []backend, all map[backend]*attemptCounts, troubled troubledAttempts) string {
	slices.SortFunc(backends, func(a, b backend) int {
		ofA, _ := troubled(all[a])
		ofB, _ := troubled(all[b])
		return cmp.Or(cmp.Compare(ofB, ofA), cmp.Compare(a.address, b.address))
	})
	var text strings.Builder
	named, others, othersTroubled := 0, 0, 0
	for _, b := range backends {
		counts := all[b]
		n, detail := troubled(counts)
		if n < leastTroubled || n*troubledPart <= counts.all || named == maxNamed {
			others += counts.all
			othersTroubled += n
			continue
		}
		named++
		if named == 1 {
			fmt.Fprintf(&text, "attempts at %s %s: %d of %d%s", b.address, what, n, counts.all, detail)
		} else {
			fmt.Fprintf(&text, ", at %s %d of %d%s", b.address, n, counts.all, detail)
		}
	}
	if named > 0 && others > 0 {
		fmt.Fprintf(&text, ", at others %d of %d", othersTroubled, others)
	}
	return text.String()
}
