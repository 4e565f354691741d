// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/testserver"
)

const (
	maxUnread  = 256             // lines
	endTimeout = 2 * time.Second // for what is still unread at the end
)

// attemptLog writes a line for each attempt that ends, in its own goroutine, so that a slow reader delays no attempt.
type attemptLog struct {
	json  bool
	lines chan string
	done  chan error

	mu      sync.Mutex
	dropped int // lines without room in the queue
}

// addresses are a server's addresses.
type addresses struct {
	Listening string `json:"listening"`
	Control   string `json:"control,omitempty"` // as a URL
}

// newAttemptLog returns a log that begins with the server's addresses.
func newAttemptLog(to io.Writer, format string, of addresses) (*attemptLog, error) {
	l := &attemptLog{json: format == "json", lines: make(chan string, maxUnread), done: make(chan error, 1)}
	first := "listening on " + of.Listening
	if of.Control != "" {
		first += ", control on " + of.Control
	}
	if l.json {
		first = object(of)
	}
	_, err := io.WriteString(to, first+"\n")
	go func() {
		var failed error
		for line := range l.lines {
			if failed == nil {
				_, failed = io.WriteString(to, line+"\n")
			}
		}
		l.done <- failed
	}()
	return l, err
}

// add writes an ended attempt.
func (l *attemptLog) add(a testserver.Attempt) {
	if a.End.IsZero() {
		return
	}
	line := inText(a)
	if l.json {
		line = object(toJSON(a))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.lines <- line:
	default:
		l.dropped++
	}
}

// end waits some time until all lines are written. add must not be called afterwards.
func (l *attemptLog) end() error {
	close(l.lines)
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	select {
	case err := <-l.done:
		if err == nil && l.dropped > 0 {
			err = fmt.Errorf("%d lines are left out: the output was not read", l.dropped)
		}
		return err
	case <-timer.C:
		return errors.New("the output is not read: lines are lost")
	}
}

func inText(a testserver.Attempt) string {
	retry, end := "", ""
	if n := previous(a.Metadata); n > 0 {
		retry = fmt.Sprintf(", retry %d", n)
	}
	if a.Cancelled {
		end = ", given up by the client"
	}
	return fmt.Sprintf("%s  %-19s %8s  %s  attempt %d%s, connection %d, received %d, sent %d%s", a.Time.Format("15:04:05.000"),
		codename.Of(a.Code), a.End.Sub(a.Time).Round(time.Microsecond), document.Printable(a.Method),
		a.Number, retry, a.Conn, a.Received, a.Sent, end)
}

// object returns a value in JSON.
func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("{\"error\":%q}", err) // impossible: v has only values that JSON has
	}
	return string(document.PrintableJSON(text))
}
