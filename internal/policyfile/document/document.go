// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads policy files and the simulator's scenarios, and keeps track of positions. JSON and YAML both become a tree of [Node] values, within limits that protect against hostile files. A
// [Decoder] turns the tree into a protobuf message. A [Report] collects errors. Each [Diagnostic] has the file, line, column,
// field and value, and a remedy.
package document

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// Format is a kind of document.
type Format struct {
	Name string // "policy file"
	Key  string // an example of its keys: "methodConfig"
}

// Parse returns the tree of a document, which must be an object, and passes it to the report; nil if it cannot be read. A
// file whose name ends in ".json", or whose text begins with "{", is read as JSON, any other as YAML.
func Parse(r *Report, data []byte, f Format) *Node {
	if !checkText(r, data) {
		return nil
	}
	var n *Node
	if IsJSON(r.file, data) {
		n = readJSON(r, data)
	} else {
		n = readYAML(r, data, f)
	}
	switch {
	case n == nil, n.Kind == Broken:
		return nil
	case n.Kind == Null:
		r.ErrorAt(n.At, "", "is empty; a %s has keys such as %s", f.Name, f.Key)
		return nil
	case n.Kind == List && slices.ContainsFunc(n.Items, func(item *Node) bool { return item.Get("serviceConfig") != nil }):
		r.ErrorAt(n.At, "", "is a list of service configs, as in a DNS TXT record; the %s is the value of serviceConfig in it", f.Name)
		return nil
	case n.Kind != Object:
		r.ErrorAt(n.At, "", "must be a map of keys such as %s", f.Key)
		return nil
	}
	r.root = n
	return n
}

// IsJSON reports whether [Parse] reads a document as JSON.
func IsJSON(file string, data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) || isJSON(file)
}

func isJSON(file string) bool { return strings.HasSuffix(file, ".json") }

// ReadFile reads a file, but not much more than the largest valid one, so that even an endless device can be named.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	return data, cmp.Or(err, f.Close())
}

// CheckNoPipe returns an error for a named pipe, which a program that follows a file cannot read again and again.
func CheckNoPipe(path string) error {
	if is, err := os.Stat(path); err == nil && is.Mode()&os.ModeNamedPipe != 0 {
		return fmt.Errorf("%s: is a named pipe: must be a file, which can be read again and again", path)
	}
	return nil
}

// Limits on documents, so that none exhausts a client's memory.
const (
	MaxBytes = 1 << 20 // also for the text, aliases included
	maxNodes = 50_000  // values, aliases included
	maxDepth = 32
)

// limit counts a document's values and text, with its aliases followed.
type limit struct {
	nodes, bytes int
}

// countValue counts one more value. It returns an error text if that exceeds a limit, else "".
func (l *limit) countValue(depth int, text string) string {
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

// checkText reports text that JSON or YAML may not contain, and characters that end a line in YAML 1.1 alone, even in a comment.
// It returns whether the document can be read.
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
		case char < ' ' && char != '\t' && char != '\n' && char != '\r', char >= 0x7f && char < 0xa0,
			char == '\u2028', char == '\u2029', char == 0xfffe, char == 0xffff:
			r.ErrorAt(c.at, "", "holds the control character %U; remove it", char)
		default:
			c.move(c.offset + size)
			continue
		}
		return false
	}
	return true
}

// cursor turns offsets into positions. It only moves forward, so that long lines are not counted again for each value.
type cursor struct {
	data   []byte
	offset int
	at     Position
}

// move advances to a later offset and returns its position.
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
