// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		`GetOrder "a\b" é 😀`:           `GetOrder "a\b" é 😀`,
		"a\x1b[31mb":                   `a\x1b[31mb`,
		"a\n::error::b\r\t\a":          `a\n::error::b\r\t\a`,
		"a\u009b1m\u202eb\u2028\ufeff": `a\u009b1m\u202eb\u2028\ufeff`,
		"a\xff\x9b\U000e0001":          `a\xff\x9b\U000e0001`,
		"\ufffd":                       "\ufffd",
	} {
		if got := document.Printable(text); got != want {
			t.Errorf("%q becomes %q; want %q", text, got, want)
		}
	}
}

func TestPrintableJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain é 😀", "\x1b[31m\u007f\u009b\u202e\u2028\ufeff\U000e0001\n"} {
		data, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		shown := document.PrintableJSON(data)
		if document.Printable(string(shown)) != string(shown) {
			t.Errorf("%q is not printable", shown)
		}
		var back map[string]string
		if err := json.Unmarshal(shown, &back); err != nil || back[text] != text {
			t.Errorf("%q, %v; want %q", back, err, text)
		}
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"a\xffb", 5, "a\ufffdb"},
		{strings.Repeat("x", 40), 30, strings.Repeat("x", 16) + "… (40 bytes)"},
		{strings.Repeat("é", 20), 30, strings.Repeat("é", 8) + "… (40 bytes)"},
		{"x" + strings.Repeat("é", 20), 30, "x" + strings.Repeat("é", 7) + "… (41 bytes)"},
		{strings.Repeat("😀", 10), 31, strings.Repeat("😀", 4) + "… (40 bytes)"},
		{strings.Repeat("\x9b", 40), 30, "\ufffd… (40 bytes)"},
		{strings.Repeat("x\xff", 20), 30, strings.Repeat("x\ufffd", 4) + "… (40 bytes)"},
		{"xxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xff", 30, "xxxxxxxxxxxxxxxx… (30 bytes)"},
		{strings.Repeat("x", 40), 2, "… (40 bytes)"},
	} {
		if got := document.Bounded(row.text, row.most); got != row.want || !utf8.ValidString(got) {
			t.Errorf("%s of %d bytes: %q; want %q", strconv.Quote(row.text), row.most, got, row.want)
		}
	}
}

// A diagnostic is one line of printable characters, whatever the file has.
func TestDiagnostic_OneLine(t *testing.T) {
	t.Parallel()
	const bad = "\x1b[31m\n::error::\u009b\xff"
	d := document.Diagnostic{File: bad, Line: 1, Column: 2, Field: bad, Value: bad, Message: bad}
	const shown = `\x1b[31m\n::error::\u009b\xff`
	if want := shown + ":1:2: " + shown + ": " + shown + ": " + shown; d.String() != want {
		t.Errorf("%q; want %q", d, want)
	}
}
