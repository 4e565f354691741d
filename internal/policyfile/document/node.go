// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Node is a value of a JSON or YAML document, with its position.
type Node struct {
	Kind    Kind
	At      Position
	Text    string  // of a scalar, unquoted
	Raw     string  // of a scalar, as written
	Items   []*Node // of a list
	Entries []Entry // of an object; see AddEntry
	index   map[string]int
}

// Entry is one key of an object with its value, in the order of the document.
type Entry struct {
	Key   string
	At    Position // of the key
	Value *Node
}

// Kind is the type of a [Node].
type Kind uint8

// The kinds.
const (
	Broken Kind = iota // already reported
	Null
	Bool
	Number
	Text
	List
	Object
)

// Position is a line and a column, both counted from 1; the column in characters.
type Position struct {
	Line, Column int
}

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if i, ok := n.index[key]; ok {
		return n.Entries[i].Value
	}
	return nil
}

// AddEntry adds an entry. If there is one with the key already, it adds nothing and returns that one.
func (n *Node) AddEntry(e Entry) (first *Entry) {
	if i, ok := n.index[e.Key]; ok {
		return &n.Entries[i]
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[e.Key] = len(n.Entries)
	n.Entries = append(n.Entries, e)
	return nil
}

// nodeAt follows a field path such as "methodConfig[0].timeout". Where the path leaves the tree, it
// returns the last node on it, and the path to that.
func (n *Node) nodeAt(field string) (last *Node, path string) {
	rest := field
	for rest != "" {
		step := len(rest)
		if i := strings.IndexAny(rest[1:], ".["); i >= 0 {
			step = i + 1
		}
		next := n.inside(rest[:step])
		if next == nil {
			return n, strings.TrimSuffix(field[:len(field)-len(rest)], ".")
		}
		n, rest = next, strings.TrimPrefix(rest[step:], ".")
	}
	return n, field
}

// inside returns the value under "key" or "[3]", or nil.
func (n *Node) inside(name string) *Node {
	digits, ok := strings.CutPrefix(name, "[")
	if !ok {
		return n.Get(name)
	}
	i, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	if err != nil || i < 0 || i >= len(n.Items) {
		return nil
	}
	return n.Items[i]
}

// Under returns the path of a key or, with an empty path, the key, shortened: a hostile key may be a megabyte or have many
// lines.
func Under(path, key string) string {
	key = Shorten(key)
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Item returns the path of an item of a list.
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Shorten cuts a text that would fill the screen in the middle: both ends may be what tells it from others.
func Shorten(s string) string { return shorten(s, 64) }

// ShortenName returns the name of a service or method as it is, unless it is longer than any that a server can have.
func ShortenName(s string) string { return shorten(s, 1024) }

// shorten cuts a text in the middle if it has more characters than most.
func shorten(s string, most int) string {
	n := utf8.RuneCountInString(s)
	if n <= most {
		return s
	}
	head, tail := most/2, n-(most-most/2) // in characters
	from, to, i := 0, 0, 0
	for at := range s {
		switch i {
		case head:
			from = at
		case tail:
			to = at
		}
		i++
	}
	return s[:from] + "…" + s[to:]
}
