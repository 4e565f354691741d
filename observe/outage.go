// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// outageQuiet is the time without a call that begins or ends to wait for an answer, after which an outage is over.
const outageQuiet = 5 * time.Second

// outages has the outages in which calls wait for an answer, by target.
type outages struct {
	mu      sync.Mutex // guards all below
	targets map[string]*outage
}

// outage counts the calls that have waited for an answer.
type outage struct {
	since         time.Time
	ended         time.Time // when the first of these calls had succeeded
	waited, saved int
	quiet         *time.Timer
}

// waits logs the first call of an outage that waits for an answer.
func (l *logger) waits(ctx context.Context, e interceptor.Event) {
	l.outages.mu.Lock()
	o, begins := l.outages.join(e.Target, l.endOutage)
	l.outages.mu.Unlock()
	if !begins {
		return
	}
	fields := []any{"target", e.Target, "since", o.since.Format(time.RFC3339), "method", e.Method, "code", codename.Of(e.Code)}
	if e.Err != nil {
		fields = append(fields, "error", document.Bounded(e.Err.Error(), longestRetried))
	}
	l.write(ctx, slog.LevelWarn, "stagger: all attempts fail, so retries wait for an answer", fields...)
}

// key returns the key of a target, at which further targets count together. s.mu must be held.
func (s *outages) key(target string) string {
	if s.targets[target] == nil && len(s.targets) >= maxTopics {
		return others
	}
	return target
}

// join returns the outage of a target, and whether it begins now. It ends, and end is called, when no call has begun or ended to wait
// for some time. s.mu must be held.
func (s *outages) join(target string, end func(key string, o *outage)) (o *outage, begins bool) {
	if s.targets == nil {
		s.targets = map[string]*outage{}
	}
	key := s.key(target)
	o = s.targets[key]
	if o != nil {
		o.quiet.Reset(outageQuiet)
		return o, false
	}
	begun := &outage{since: time.Now()}
	begun.quiet = time.AfterFunc(outageQuiet, func() { end(key, begun) })
	s.targets[key] = begun
	return begun, true
}

// hasWaited counts a call that has waited for an answer. A stream may end long after its outage: it doesn't count.
func (l *logger) hasWaited(e interceptor.CallEnd) {
	s := &l.outages
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.targets[s.key(e.Target)]
	if o == nil {
		return
	}
	o.quiet.Reset(outageQuiet)
	o.waited++
	if e.Code != codes.OK {
		return
	}
	o.saved++
	if o.ended.IsZero() {
		o.ended = time.Now()
	}
}

// endOutage logs what has become of the calls that waited. If a call ends just when this begins, it is called twice.
func (l *logger) endOutage(key string, o *outage) {
	s := &l.outages
	s.mu.Lock()
	if s.targets[key] != o {
		s.mu.Unlock()
		return
	}
	if o.waited == 0 { // they wait still
		o.quiet.Reset(outageQuiet)
		s.mu.Unlock()
		return
	}
	delete(s.targets, key)
	s.mu.Unlock()
	since := o.since.Format(time.RFC3339)
	if o.saved == 0 {
		l.write(context.Background(), slog.LevelWarn, "stagger: calls waited for an answer, and none came",
			"target", key, "since", since, "calls", o.waited, "saved", o.saved)
		return
	}
	lasted := o.ended.Sub(o.since).Round(time.Millisecond)
	l.write(context.Background(), slog.LevelInfo, "stagger: the server answers again, after calls have waited",
		"target", key, "since", since, "calls", o.waited, "saved", o.saved, "lasted", lasted.String())
}
