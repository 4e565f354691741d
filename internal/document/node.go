// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strconv"
	"strings"
	"unicode"
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
// returns the last node on it and false.
func (n *Node) nodeAt(field string) (*Node, bool) {
	for field != "" {
		step := len(field)
		if i := strings.IndexAny(field[1:], ".["); i >= 0 {
			step = i + 1
		}
		next := n.inside(field[:step])
		if next == nil {
			return n, false
		}
		n, field = next, strings.TrimPrefix(field[step:], ".")
	}
	return n, true
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

// Shorten shortens a text that would fill the screen.
func Shorten(s string) string {
	const most = 64
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
