// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"slices"
	"strings"
)

// The severities of a [Diagnostic].
const (
	SeverityError   = "error"   // the document is refused
	SeverityWarning = "warning" // the value is valid, but may surprise
	SeverityNote    = "note"    // worth knowing
)

// Diagnostic is one finding about a document. Unknown parts are empty: a config written in Go has no file and no lines.
type Diagnostic struct {
	Severity string `json:"severity"` // "error": the document is refused; "warning": valid, but may surprise; "note": worth knowing
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`   // from 1
	Column   int    `json:"column,omitempty"` // from 1, in characters
	Field    string `json:"field,omitempty"`  // "methodConfig[0].retryPolicy.maxAttempts"
	Value    string `json:"value,omitempty"`  // as written
	Message  string `json:"message"`          // what is wrong, and the remedy
}

// String returns one line of printable characters, without the severity:
// retry.yaml:7:22: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File + ":")
	}
	if d.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", d.Line, d.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	for _, part := range []string{d.Field, d.Value} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(d.Message)
	return Printable(b.String())
}

// Error holds a document's errors in order; of more than a thousand, the first ones and how many there are.
type Error struct {
	Diagnostics []Diagnostic
}

// Error lists the diagnostics, one a line.
func (e *Error) Error() string { return Lines(e.Diagnostics) }

// Lines lists values, one a line.
func Lines[T fmt.Stringer](list []T) string {
	lines := make([]string, len(list))
	for i, v := range list {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}

// Lazy is a part of a message that is computed only when the message is shown.
type Lazy func() string

// String computes the text.
func (l Lazy) String() string { return l() }

// Suggest returns a hint that names the most similar word, or all words.
func Suggest(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	if len(words) == 0 {
		return "must be left out"
	}
	return "must be " + OneOf(words)
}

// OneOf returns the words as a list: "A, B or C".
func OneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Nearest returns the word that resembles word most: the same in another spelling or with a prefix, else the first with the fewest letters
// changed (in long words at most a fifth), or "".
func Nearest(word string, words []string) string {
	const longest = 64 // longer words are not compared
	if len(word) > longest {
		return ""
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	lower := strings.ToLower(word)
	word = plain.Replace(lower)
	best, fewest := "", longest
	for _, w := range words {
		folded := strings.ToLower(plain.Replace(w))
		n := distance(word, folded)
		if sameLetters(word, folded) || strings.HasSuffix(lower, "_"+strings.ToLower(w)) {
			n = 1
		}
		if n < fewest && n*3 <= len(folded)+1 && n <= max(2, len(folded)/5) {
			best, fewest = w, n
		}
	}
	return best
}

// sameLetters reports whether a is b with letters swapped, the most frequent typing error.
func sameLetters(a, b string) bool {
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
}

// distance returns how many letters must be added, dropped or replaced to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
