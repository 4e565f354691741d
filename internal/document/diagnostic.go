// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a [Diagnostic] is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // it is wrong, and refused
	SeverityWarning Severity = "warning" // it is right, and may surprise
	SeverityNote    Severity = "note"    // it is worth knowing
)

// Diagnostic is one thing that is to be said of a document. Parts that are not known are empty: a config
// that was written in Go has no file and no lines.
type Diagnostic struct {
	Severity Severity
	File     string
	Line     int    // from 1
	Column   int    // from 1, in characters
	Field    string // "methodConfig[0].retryPolicy.maxAttempts"
	Value    string // as written
	Message  string // what is wrong, and what would be right
}

// String is one line, without the severity:
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
	return b.String()
}

// Error is all that is wrong with a document, in its order; of more than a thousand mistakes, the first ones
// and how many there are.
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

// Lazy is a part of a message that is looked for only if it is shown.
type Lazy func() string

// String looks for it.
func (l Lazy) String() string { return l() }

// Suggest names the word that was meant, or all of them.
func Suggest(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	if len(words) == 0 {
		return "must be left out"
	}
	return "must be " + OneOf(words)
}

// OneOf lists words: "A, B or C".
func OneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Nearest is the word that was probably meant: the same in another spelling, else the first with
// the fewest letters changed, of a long one at most a fifth; "" if none is near.
func Nearest(word string, words []string) string {
	const longest = 64 // nobody's slip is longer
	if len(word) > longest {
		return ""
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	word = strings.ToLower(plain.Replace(word))
	best, fewest := "", longest
	for _, w := range words {
		folded := strings.ToLower(plain.Replace(w))
		n := distance(word, folded)
		if sameLetters(word, folded) {
			n = 1
		}
		if n < fewest && n*3 <= len(folded)+1 && n <= max(2, len(folded)/5) {
			best, fewest = w, n
		}
	}
	return best
}

// sameLetters reports whether a is b with letters swapped, the most frequent slip of all.
func sameLetters(a, b string) bool {
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
}

// distance is how many letters must be added, dropped or replaced to turn a into b (Levenshtein).
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
