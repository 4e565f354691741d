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

// defaultLimit is how many lines a second there are for each method and reason, unless [Limit] says otherwise.
const defaultLimit = 10

// Limit lets the first n lines a second for each method and reason through, in place of 10. When the second
// is over, one line says how many more there were, in a field of that name: an outage does not fill the disk. With 0
// there are only those, with [math.MaxUint] there are none. The second begins with the first line after the one before.
// Methods beyond the first hundred in a second are counted together, as "other". Changes of the policies and warnings are
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

// mostTopics bounds the topics of a second: names of methods may come from users.
const mostTopics = 100

// topic is what lines are counted for.
type topic struct {
	method string
	reason policy.Reason
}

// tally is how many lines a topic has had in this second, and what the last was.
type tally struct {
	n       uint
	level   slog.Level
	message string
}

// admit reports whether a line may be written now, and begins a second if none runs: then flush is called at its end.
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

// end ends the second, and returns what its topics have had.
func (l *limit) end() map[topic]*tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// flush writes how many lines of each topic were not written.
func (l *logger) flush() {
	for about, t := range l.limit.end() {
		if t.n > l.limit.most {
			l.write(context.Background(), t.level, t.message, "method", about.method, "reason", string(about.reason), "more", t.n-l.limit.most)
		}
	}
}
