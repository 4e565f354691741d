// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/tools/report"
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

// addresses are a server's addresses.
type addresses struct {
	Listening string `json:"listening"`
	Control   string `json:"control,omitempty"` // as a URL
}

// newAttemptLog returns a log that begins with the server's addresses.
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

// add writes an ended attempt.
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

// end writes the summary, and returns the first write error. add must not be called afterwards.
func (l *attemptLog) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json {
		return l.out.end(object(map[string]any{"summary": l.summary.sorted(), "linesLeftOut": l.out.dropped}))
	}
	dropped := ""
	if l.out.dropped > 0 {
		dropped = fmt.Sprintf("%d lines were left out: the output was not read\n", l.out.dropped)
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

// length returns a duration without needless digits.
func length(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// printable returns a method's name, quoted if it has unusual characters.
func printable(method string) string {
	if strings.ContainsFunc(method, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(method)
	}
	return method
}

// object returns a line of JSON.
func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("{\"error\":%q}\n", err) // impossible: v has only texts and numbers
	}
	return string(text) + "\n"
}

// summary counts attempts by method.
type summary map[string]*count

// count has the counts of one method.
type count struct {
	Method    string         `json:"method"`
	Attempts  int            `json:"attempts"`
	Retries   int            `json:"retries"`   // attempts marked as retries
	Cancelled int            `json:"cancelled"` // given up by the client
	Codes     map[string]int `json:"codes"`
}

func (s summary) add(method string, code codes.Code, retry, cancelled bool) {
	c := s[method]
	if c == nil {
		c = &count{Method: method, Codes: map[string]int{}}
		s[method] = c
	}
	c.Attempts++
	if retry {
		c.Retries++
	}
	if cancelled {
		c.Cancelled++
	}
	c.Codes[codename.Of(code)]++
}

// sorted returns the counts by method.
func (s summary) sorted() []*count {
	list := make([]*count, 0, len(s))
	for _, c := range s {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *count) int { return strings.Compare(a.Method, b.Method) })
	return list
}

func (s summary) table() string {
	if len(s) == 0 {
		return "no attempts\n"
	}
	shown := report.Table{Columns: []string{"method", "attempts", "retries", "given up", "codes"}}
	for _, c := range s.sorted() {
		shown.Rows = append(shown.Rows, []string{
			printable(c.Method), strconv.Itoa(c.Attempts), strconv.Itoa(c.Retries), strconv.Itoa(c.Cancelled), c.codes(),
		})
	}
	return terminal.Table(shown, terminal.Style{}, "") + "\n"
}

// codes returns the codes, the most frequent first.
func (c *count) codes() string {
	names := report.MostFrequent(c.Codes)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, c.Codes[name])
	}
	return strings.Join(names, ", ")
}

const (
	maxUnread  = 4096            // lines
	endTimeout = 2 * time.Second // for what is still
)

// lineWriter writes lines in its own goroutine, so that a slow reader blocks nothing.
type lineWriter struct {
	lines   chan string
	dropped int // lines without room in the queue
	done    chan error
}

func newLineWriter(to io.Writer) *lineWriter {
	w := &lineWriter{lines: make(chan string, maxUnread), done: make(chan error, 1)}
	go func() {
		var first error
		for line := range w.lines {
			if first == nil {
				_, first = io.WriteString(to, line)
			}
		}
		w.done <- first
	}()
	return w
}

func (w *lineWriter) write(line string) {
	select {
	case w.lines <- line:
	default:
		w.dropped++
	}
}

// end writes a last line, and waits some time until all lines are written.
func (w *lineWriter) end(last string) error {
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	late := errors.New("the output is not read: the records are lost")
	select {
	case w.lines <- last:
	case <-timer.C:
		close(w.lines)
		return late
	}
	close(w.lines)
	select {
	case err := <-w.done:
		return err
	case <-timer.C:
		return late
	}
}
