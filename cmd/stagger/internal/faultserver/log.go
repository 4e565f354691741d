// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/testserver"
)

// attemptLog writes attempts as they end, and counts them.
type attemptLog struct {
	json  bool
	style terminal.Style

	mu      sync.Mutex
	out     *lineWriter
	summary summary
}

// addresses are those of a server.
type addresses struct {
	Listening string `json:"listening"`
	Control   string `json:"control,omitempty"` // as a URL
}

// newAttemptLog begins with the addresses of the server.
func newAttemptLog(to io.Writer, format string, of addresses) (*attemptLog, error) {
	l := &attemptLog{json: format == "json", style: terminal.StyleOf(to), summary: summary{}}
	first := "listening on " + of.Listening
	if of.Control != "" {
		first += ", control on " + of.Control
	}
	first += "\n"
	if l.json {
		first = object(of)
	}
	_, err := io.WriteString(to, first)
	l.out = newLineWriter(to)
	return l, err
}

// add writes an attempt that has ended.
func (l *attemptLog) add(a testserver.Attempt) {
	if a.End.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	retry := previous(a.Metadata)
	l.summary.add(a.Method, a.Code, retry > 0, a.Cancelled)
	if l.json {
		l.out.write(object(toJSON(a)))
	} else {
		l.out.write(l.inText(a, retry))
	}
}

// end writes the summary, and returns the error of writing. Nothing may be added after it.
func (l *attemptLog) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json {
		return l.out.end(object(map[string]any{"summary": l.summary.sorted(), "linesLeftOut": l.out.dropped}))
	}
	dropped := ""
	if l.out.dropped > 0 {
		dropped = fmt.Sprintf("%d lines were left out: nobody read them\n", l.out.dropped)
	}
	return l.out.end(dropped + l.summary.table())
}

func (l *attemptLog) inText(a testserver.Attempt, retry int) string {
	var b strings.Builder
	name := fmt.Sprintf("%-19s", codename.Of(a.Code))
	if a.Code == codes.OK {
		name = l.style.Success(name)
	} else {
		name = l.style.Error(name)
	}
	fmt.Fprintf(&b, "%s  %s %8s  %s  attempt %d", a.Time.Format("15:04:05.000"), name, length(a.End.Sub(a.Time)), printable(a.Method), a.Number)
	if retry > 0 {
		b.WriteString(l.style.Warning(fmt.Sprintf(", retry %d", retry)))
	}
	fmt.Fprintf(&b, ", connection %d, received %d (%d bytes), sent %d", a.Conn, a.Received, a.Bytes, a.Sent)
	if a.Cancelled {
		b.WriteString(", " + l.style.Warning("given up by the client"))
	}
	b.WriteByte('\n')
	return b.String()
}

// length is short where nobody needs the digits.
func length(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// printable is a method's name, in quotes if it is a strange one.
func printable(method string) string {
	if strings.ContainsFunc(method, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(method)
	}
	return method
}

// object is a line of JSON.
func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("{\"error\":%q}\n", err) // cannot be: there are texts and numbers in it
	}
	return string(text) + "\n"
}
