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

// journal writes attempts down as they end, and sums them up.
type journal struct {
	json  bool
	style terminal.Style

	mu    sync.Mutex
	out   *output
	tally tally
}

// newJournal begins with the address of the server.
func newJournal(to io.Writer, format, address string) (*journal, error) {
	j := &journal{json: format == "json", style: terminal.StyleOf(to), tally: tally{}}
	first := "listening on " + address + "\n"
	if j.json {
		first = object(map[string]string{"listening": address})
	}
	_, err := io.WriteString(to, first)
	j.out = newOutput(to)
	return j, err
}

// add writes down an attempt that has ended.
func (j *journal) add(a testserver.Attempt) {
	if a.End.IsZero() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	retry := control.Attempt(a).GetPreviousAttempts()
	j.tally.add(a.Method, a.Code, retry > 0, a.Cancelled)
	if j.json {
		j.out.write(inJSON(a))
	} else {
		j.out.write(j.inText(a, retry))
	}
}

// end sums up, and returns what went wrong with the writing. Nothing may be added after it.
func (j *journal) end() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.json {
		return j.out.end(object(map[string]any{"summary": j.tally.sorted(), "linesLeftOut": j.out.lost}))
	}
	lost := ""
	if j.out.lost > 0 {
		lost = fmt.Sprintf("%d lines were left out: nobody read them\n", j.out.lost)
	}
	return j.out.end(lost + j.tally.table())
}

func (j *journal) inText(a testserver.Attempt, retry uint32) string {
	var b strings.Builder
	name := fmt.Sprintf("%-19s", control.CodeName(a.Code))
	if a.Code == codes.OK {
		name = j.style.Success(name)
	} else {
		name = j.style.Error(name)
	}
	fmt.Fprintf(&b, "%s  %s %8s  %s  attempt %d", a.Time.Format("15:04:05.000"), name, length(a.End.Sub(a.Time)), printable(a.Method), a.Number)
	if retry > 0 {
		b.WriteString(j.style.Warning(fmt.Sprintf(", retry %d", retry)))
	}
	fmt.Fprintf(&b, ", connection %d, received %d (%d bytes), sent %d", a.Conn, a.Received, a.Bytes, a.Sent)
	if a.Cancelled {
		b.WriteString(", " + j.style.Warning("given up by the client"))
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

// inJSON is a line; the blanks that protojson strews in are taken out.
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
