// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// What a document may be at most, so that no document takes a client down.
const (
	MaxBytes = 1 << 20 // and of text after aliases
	maxNodes = 50_000  // values after aliases
	maxDepth = 32
)

// limit counts what a document grows to when its aliases are followed.
type limit struct {
	nodes, bytes int
}

// take counts one more value, and says what is wrong if that is too much.
func (l *limit) take(depth int, text string) string {
	l.nodes++
	l.bytes += len(text)
	switch {
	case depth > maxDepth:
		return fmt.Sprintf("nests deeper than %d levels", maxDepth)
	case l.nodes > maxNodes:
		return fmt.Sprintf("has more than %d values, aliases followed", maxNodes)
	case l.bytes > MaxBytes:
		return fmt.Sprintf("has more than %d bytes of text, aliases followed", MaxBytes)
	}
	return ""
}

// checkText reports what neither JSON nor YAML can hold, and whether the rest can be read.
func checkText(r *Report, data []byte) bool {
	if len(data) > MaxBytes {
		r.ErrorAt(Position{}, "", "is larger than %d bytes (1 MiB)", MaxBytes)
		return false
	}
	c := cursor{data: data, at: Position{1, 1}}
	for c.offset < len(data) {
		char, size := utf8.DecodeRune(data[c.offset:])
		switch {
		case c.offset == 0 && char == '\uFEFF':
			r.ErrorAt(c.at, "", "begins with a byte order mark; save the file as UTF-8 without one")
		case char == utf8.RuneError && size == 1:
			r.ErrorAt(c.at, "", "is not UTF-8: byte 0x%02x", data[c.offset])
		case char < ' ' && char != '\t' && char != '\n' && char != '\r', char >= 0x7f && char < 0xa0 && char != 0x85, char == 0xfffe, char == 0xffff:
			r.ErrorAt(c.at, "", "holds the control character %U; remove it", char)
		default:
			c.move(c.offset + size)
			continue
		}
		return false
	}
	return true
}

// checkBreaks reports what ends a line, a comment too, in YAML 1.1 but not since YAML 1.2.
func checkBreaks(r *Report, data []byte) bool {
	i := bytes.IndexAny(data, "\u0085\u2028\u2029")
	if i < 0 {
		return true
	}
	c := cursor{data: data, at: Position{1, 1}}
	char, _ := utf8.DecodeRune(data[i:])
	r.ErrorAt(c.move(i), "", "holds %U, which ends a line for some readers of YAML and not for others; remove it", char)
	return false
}

// cursor turns offsets into positions. It only moves forward, so that a file of one long line is
// not counted again for every value.
type cursor struct {
	data   []byte
	offset int
	at     Position
}

// move goes on to a later offset and returns its position.
func (c *cursor) move(offset int) Position {
	for c.offset < min(offset, len(c.data)) {
		r, size := utf8.DecodeRune(c.data[c.offset:])
		c.offset += size
		c.at.Column++
		if r == '\n' {
			c.at = Position{c.at.Line + 1, 1}
		}
	}
	return c.at
}
