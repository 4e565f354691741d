// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	"github.com/stagger-go/stagger/internal/report/terminal"
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

// newAttemptLog begins with the address of the server.
func newAttemptLog(to io.Writer, format, address string) (*attemptLog, error) {
	l := &attemptLog{json: format == "json", style: terminal.StyleOf(to), summary: summary{}}
	first := "listening on " + address + "\n"
	if l.json {
		first = object(map[string]string{"listening": address})
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
	retry := control.Attempt(a).GetPreviousAttempts()
	l.summary.add(a.Method, a.Code, retry > 0, a.Cancelled)
	if l.json {
		l.out.write(inJSON(a))
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

func (l *attemptLog) inText(a testserver.Attempt, retry uint32) string {
	var b strings.Builder
	name := fmt.Sprintf("%-19s", control.CodeName(a.Code))
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

// inJSON is a line; protojson adds blanks at random, which are taken out.
func inJSON(a testserver.Attempt) string {
	var b bytes.Buffer
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(control.Attempt(a))
	if err == nil {
		err = json.Compact(&b, text)
	}
	if err != nil {
		return fmt.Sprintf("{\"error\":%q}\n", err) // cannot be: all its texts are valid
	}
	b.WriteByte('\n')
	return b.String()
}

// object is a line of JSON.
func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("{\"error\":%q}\n", err) // cannot be: there are texts and numbers in it
	}
	return string(text) + "\n"
}
