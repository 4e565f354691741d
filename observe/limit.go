// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// Option configures [Slog] and [Log].
type Option func(*logger)

// defaultLimit is the number of lines per second for each method and reason, without [Limit].
const defaultLimit = 10

// Limit writes only the first n lines per second for each method and reason, instead of 10, so that an outage does not fill
// the disk. At the end of the second, one line has the number of suppressed lines, in the field more. With 0
// there are only these lines, with [math.MaxUint] there are none. A second begins with the first line after the last second.
// Methods beyond the first hundred in a second count together, as "other". Changes of the policies and warnings are
// not limited.
func Limit(n uint) Option {
	return func(l *logger) { l.limit = &limit{most: n} }
}

// limit counts lines.
type limit struct {
	most uint

	mu    sync.Mutex // guards all below
	lines map[topic]*tally
}

// mostTopics bounds the topics of a second: users may choose the names of methods.
const mostTopics = 100

// topic identifies lines that are limited together.
type topic struct {
	method string
	reason policy.Reason
}

// tally has the number of a topic's lines in this second, and the last line.
type tally struct {
	n       uint
	level   slog.Level
	message string
}

// admit reports whether a line may be written now. It begins a second if there is none, and calls flush at its end.
func (l *limit) admit(about topic, level slog.Level, message string, flush func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		l.lines = map[topic]*tally{}
		time.AfterFunc(time.Second, flush)
	}
	if l.lines[about] == nil && len(l.lines) >= mostTopics {
		about.method = "other"
	}
	t := l.lines[about]
	if t == nil {
		t = new(tally)
		l.lines[about] = t
	}
	t.n++
	t.level, t.message = level, message
	return t.n <= l.most
}

// end ends the second, and returns its tallies.
func (l *limit) end() map[topic]*tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// flush writes the number of suppressed lines of each topic.
func (l *logger) flush() {
	for about, t := range l.limit.end() {
		if t.n > l.limit.most {
			l.write(context.Background(), t.level, t.message, "method", about.method, "reason", string(about.reason), "more", t.n-l.limit.most)
		}
	}
}
