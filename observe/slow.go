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

	"github.com/stagger-go/stagger/interceptor"
)

const (
	// slowInterval is the time for which attempts are counted after a slow one, before the line that names the slow backends.
	slowInterval = time.Minute
	// leastSlow and slowPart are how many attempts at a backend are slow if the line names it: fewer are what a hedging delay expects.
	leastSlow = 3
	slowPart  = 5 // more than one in so many
	// maxNamed bounds the backends in a line, and maxBackends those that are counted: pods come and go.
	maxNamed    = 3
	maxBackends = 1000
)

// backend is the address that gRPC names, of a target.
type backend struct{ target, address string }

// slowness counts attempts by backend, from a slow one on, for a minute. While none is slow, an attempt costs one load.
type slowness struct {
	counting atomic.Bool

	mu       sync.Mutex // guards all below
	backends map[backend]attemptCounts
}

type attemptCounts struct{ attempts, slow int }

func (c attemptCounts) and(other attemptCounts) attemptCounts {
	return attemptCounts{c.attempts + other.attempts, c.slow + other.slow}
}

// isSlow reports whether a backend with these counts is worth a line.
func (c attemptCounts) isSlow() bool { return c.slow >= leastSlow && c.slow*slowPart > c.attempts }

// attempt counts an attempt that has ended. The first one that is slow begins a minute.
func (l *logger) attempt(_ context.Context, e interceptor.Event) {
	s := &l.slowness
	if e.Peer == nil || !e.SlowAttempt && !s.counting.Load() {
		return
	}
	of := backend{e.Target, e.Peer.String()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backends == nil {
		s.backends = map[backend]attemptCounts{}
		s.counting.Store(true)
		time.AfterFunc(slowInterval, l.writeSlow)
	}
	if _, known := s.backends[of]; !known && len(s.backends) >= maxBackends {
		of.address = "other"
	}
	counts := attemptCounts{attempts: 1}
	if e.SlowAttempt {
		counts.slow = 1
	}
	s.backends[of] = s.backends[of].and(counts)
}

// writeSlow ends the minute, and writes a line for each target with slow backends.
func (l *logger) writeSlow() {
	s := &l.slowness
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
		if text := describeSlow(targets[target], all); text != "" {
			l.write(context.Background(), slog.LevelWarn, "stagger: "+text, "target", target)
		}
	}
}

// describeSlow returns which of a target's backends were slow, the worst ones first, or "".
func describeSlow(backends []backend, all map[backend]attemptCounts) string {
	slices.SortFunc(backends, func(a, b backend) int {
		return cmp.Or(cmp.Compare(all[b].slow, all[a].slow), cmp.Compare(a.address, b.address))
	})
	var text strings.Builder
	var others attemptCounts
	named := 0
	for _, b := range backends {
		counts := all[b]
		if !counts.isSlow() || named == maxNamed {
			others = others.and(counts)
			continue
		}
		named++
		if named == 1 {
			fmt.Fprintf(&text, "attempts at %s were slow: %d of %d", b.address, counts.slow, counts.attempts)
		} else {
			fmt.Fprintf(&text, ", at %s %d of %d", b.address, counts.slow, counts.attempts)
		}
	}
	if named > 0 && others.attempts > 0 {
		fmt.Fprintf(&text, ", at others %d of %d", others.slow, others.attempts)
	}
	return text.String()
}
