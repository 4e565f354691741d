// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// fields are the keys of an object, which must each be asked for.
type fields struct {
	*reader

	path  string
	at    *yaml.Node
	nodes map[string]*yaml.Node
	order []string
	asked []string
}

// object makes fields of a node; nil, and a problem, if it is none.
func (r *reader) object(path string, n *yaml.Node) *fields {
	if n.Kind != yaml.MappingNode {
		r.add(n, path, shown(n), "must be a map of keys")
		return nil
	}
	f := &fields{reader: r, path: path, at: n, nodes: map[string]*yaml.Node{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := f.under(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			r.add(key, path, "", "a key must be a text")
			continue
		case f.nodes[key.Value] != nil:
			r.add(key, name, "", "stands twice; keep one")
			continue
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			r.add(value, name, "", "anchors and aliases are not understood; write it out")
			continue
		}
		f.nodes[key.Value] = value
		f.order = append(f.order, key.Value)
	}
	return f
}

func shown(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

func (f *fields) under(key string) string {
	if f.path == "" {
		return key
	}
	return f.path + "." + key
}

// get is the value of a key; nil if it is not there.
func (f *fields) get(key string) *yaml.Node {
	f.asked = append(f.asked, key)
	return f.nodes[key]
}

func (f *fields) has(key string) bool { return f.nodes[key] != nil }

// keys are those that the file has, in its order.
func (f *fields) keys() []string { return f.order }

// wrong reports the value of a key, or that it is not there.
func (f *fields) wrong(key, format string, args ...any) {
	n := f.nodes[key]
	if n == nil {
		f.add(f.at, f.under(key), "", "is required; "+format, args...)
		return
	}
	f.add(n, f.under(key), shown(n), format, args...)
}

// end reports keys that nobody has asked for.
func (f *fields) end() {
	if f == nil {
		return
	}
	for _, key := range f.order {
		if !slices.Contains(f.asked, key) {
			f.add(f.nodes[key], f.under(key), "", "unknown key; must be %s", oneOf(f.asked))
		}
	}
}

// oneOf lists words: "A, B or C".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
