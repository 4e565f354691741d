// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Mistake is one thing that is wrong with a script or a request.
type Mistake struct {
	Field   string // "scripts[0].steps[1].fail.code"
	Value   string // as written, shortened; empty if there is none
	Message string // what would be right
}

// String is one line, such as: scripts[0].method: "GetOrder": must be "/package.Service/Method".
func (m Mistake) String() string {
	var b strings.Builder
	for _, part := range []string{m.Field, m.Value} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(m.Message)
	return b.String()
}

// Error is all that is wrong, in the order of the fields.
type Error struct {
	Mistakes []Mistake
}

// Error lists the mistakes, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// mostMistakes go into one status: many clients take no more than 8 KiB of trailers.
const mostMistakes = 8

// status is what a client of the control service gets.
func (e *Error) status() error {
	shown := e.Mistakes[:min(len(e.Mistakes), mostMistakes)]
	text := (&Error{shown}).Error()
	if more := len(e.Mistakes) - len(shown); more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	var details errdetails.BadRequest
	for _, m := range shown {
		field := m.Field
		m.Field = ""
		details.FieldViolations = append(details.FieldViolations,
			&errdetails.BadRequest_FieldViolation{Field: field, Description: m.String()})
	}
	st := status.New(codes.InvalidArgument, text)
	if full, err := st.WithDetails(&details); err == nil { // fails for OK only
		st = full
	}
	return st.Err()
}

// mistakes collects what a check finds. The zero value is ready for use.
type mistakes struct {
	list []Mistake
}

func (ms *mistakes) add(field string, value any, format string, args ...any) {
	ms.list = append(ms.list, Mistake{field, valueText(value), fmt.Sprintf(format, args...)})
}

func (ms *mistakes) err() error {
	if len(ms.list) == 0 {
		return nil
	}
	return &Error{ms.list}
}

// valueText is a value as a mistake shows it; nil is one that is not there.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return fmt.Sprintf("%q", shorten(v))
	default:
		return shorten(fmt.Sprint(v))
	}
}

// shorten keeps a text from filling the screen.
func shorten(s string) string {
	const most = 64
	if r := []rune(s[:min(len(s), 4*most+4)]); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// under is a field below a path, which may be empty.
func under(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
