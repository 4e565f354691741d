// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// What a policy file may be at most, so that no file takes a client down.
const (
	maxBytes = 1 << 20 // and of text after aliases
	maxNodes = 50_000  // values after aliases
	maxDepth = 32
)

// limit counts what a file grows to when its aliases are followed.
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
	case l.bytes > maxBytes:
		return fmt.Sprintf("has more than %d bytes of text, aliases followed", maxBytes)
	}
	return ""
}

// checkText reports what neither JSON nor YAML can hold, and whether the rest can be read.
func checkText(ps *problems, data []byte) bool {
	if len(data) > maxBytes {
		ps.at(position{}, "", "is larger than %d bytes (1 MiB)", maxBytes)
		return false
	}
	c := cursor{data: data, at: position{1, 1}}
	for c.offset < len(data) {
		r, size := utf8.DecodeRune(data[c.offset:])
		switch {
		case c.offset == 0 && r == '\uFEFF':
			ps.at(c.at, "", "begins with a byte order mark; save the file as UTF-8 without one")
		case r == utf8.RuneError && size == 1:
			ps.at(c.at, "", "is not UTF-8: byte 0x%02x", data[c.offset])
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			ps.at(c.at, "", "holds the control character %U; remove it", r)
		default:
			c.move(c.offset + size)
			continue
		}
		return false
	}
	return true
}

// checkBreaks reports what ends a line, a comment too, in YAML 1.1 but not since YAML 1.2.
func checkBreaks(ps *problems, data []byte) bool {
	i := bytes.IndexAny(data, "\u0085\u2028\u2029")
	if i < 0 {
		return true
	}
	c := cursor{data: data, at: position{1, 1}}
	r, _ := utf8.DecodeRune(data[i:])
	ps.at(c.move(i), "", "holds %U, which ends a line for some readers of YAML and not for others; remove it", r)
	return false
}

// cursor turns offsets into positions. It only moves forward, so that a file of one long line is
// not counted again for every value.
type cursor struct {
	data   []byte
	offset int
	at     position
}

// move goes on to a later offset and returns its position.
func (c *cursor) move(offset int) position {
	for c.offset < min(offset, len(c.data)) {
		r, size := utf8.DecodeRune(c.data[c.offset:])
		c.offset += size
		c.at.column++
		if r == '\n' {
			c.at = position{c.at.line + 1, 1}
		}
	}
	return c.at
}
