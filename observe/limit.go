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

const (
	// summaryInterval is the time between two lines of a topic.
	summaryInterval = 10 * time.Second
	// maxTopics bounds the topics: users may choose the names of methods.
	maxTopics = 100
)

// topic identifies lines of which only the first is written immediately. The others are counted.
type topic struct {
	message string
	method  string
	reason  policy.Reason
}

// limit has the lines that were suppressed in the current interval of each topic.
type limit struct {
	mu     sync.Mutex // guards all below
	topics map[topic]uint
}

// others stands for the methods, targets and backends beyond a bound.
const others = "other"

// admit reports whether a line is its topic's first. If not, the line is counted.
func (l *logger) admit(about topic, level slog.Level) bool {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	if _, begun := l.limit.topics[about]; !begun && len(l.limit.topics) >= maxTopics {
		about.method = others
	}
	if _, begun := l.limit.topics[about]; begun {
		l.limit.topics[about]++
		return false
	}
	l.limit.topics[about] = 0
	time.AfterFunc(summaryInterval, func() { l.summarize(about, level) })
	return true
}

// summarize writes how many lines of a topic were suppressed in the last interval, and begins another one. Without any, the
// topic is over.
func (l *logger) summarize(about topic, level slog.Level) {
	l.limit.mu.Lock()
	more := l.limit.topics[about]
	if l.limit.topics[about] = 0; more == 0 {
		delete(l.limit.topics, about)
	}
	l.limit.mu.Unlock()
	if more > 0 {
		l.write(context.Background(), level, about.message, "method", about.method, "reason", string(about.reason), "more", more)
		time.AfterFunc(summaryInterval, func() { l.summarize(about, level) })
	}
}
