// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"
	"unicode"
)

// node is a value of a policy file, JSON or YAML, with its place.
type node struct {
	kind    kind
	at      position
	text    string // of a scalar, unquoted
	raw     string // of a scalar, as written
	items   []*node
	entries []entry
	index   map[string]int // of entries
}

// entry is one key of an object with its value, in the order of the file.
type entry struct {
	key   string
	at    position
	value *node
}

type kind uint8

const (
	broken kind = iota // reported already
	null
	boolean
	number
	text
	list
	object
)

// position is a place in a file, both from 1; the column is counted in characters.
type position struct {
	line, column int
}

// get is the value of a key, or nil.
func (n *node) get(key string) *node {
	if i, ok := n.index[key]; ok {
		return n.entries[i].value
	}
	return nil
}

// put adds an entry, unless there is one with the key: that one is returned.
func (n *node) put(e entry) (first *entry) {
	if i, ok := n.index[e.key]; ok {
		return &n.entries[i]
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[e.key] = len(n.entries)
	n.entries = append(n.entries, e)
	return nil
}

// find follows a field path such as "methodConfig[0].timeout". Where the path leaves the tree, it
// returns the last node on it and false.
func (n *node) find(field string) (*node, bool) {
	for field != "" {
		step := len(field)
		if i := strings.IndexAny(field[1:], ".["); i >= 0 {
			step = i + 1
		}
		next := n.step(field[:step])
		if next == nil {
			return n, false
		}
		n, field = next, strings.TrimPrefix(field[step:], ".")
	}
	return n, true
}

// step is the value under "key" or "[3]", or nil.
func (n *node) step(name string) *node {
	digits, ok := strings.CutPrefix(name, "[")
	if !ok {
		return n.get(name)
	}
	i, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	if err != nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// under is the path of a key or, with an empty path, the key. A hostile key may be a megabyte, or
// have lines.
func under(path, key string) string {
	key = shorten(key)
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// shorten keeps a text from filling the screen.
func shorten(s string) string {
	const most = 64
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
