// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// gaps are the keys and items with an empty line above them. YAML's reader forgets those.
type gaps map[*yaml.Node]bool

// gapsOf finds the empty lines of a file, before anything is moved.
func gapsOf(root *yaml.Node, data []byte) gaps {
	g := gaps{}
	text := lines(data)
	units(root, func(n *yaml.Node, _, _ bool) {
		if at := top(text, n.Line); at > 0 && strings.TrimSpace(text[at-1]) == "" {
			g[n] = true
		}
	})
	return g
}

// insert puts the empty lines into what was written of root, and the usual ones: above the entries of
// methodConfig, and above the long parts of the file. again is what was written, read again.
func (g gaps) insert(out []byte, root, again *yaml.Node) []byte {
	var wanted []bool
	units(root, func(n *yaml.Node, first, long bool) { wanted = append(wanted, !first && (long || g[n])) })
	text := lines(out)
	above := map[int]bool{} // by index of line
	next := 0
	units(again, func(n *yaml.Node, _, _ bool) {
		if next < len(wanted) && wanted[next] {
			above[top(text, n.Line)] = true
		}
		next++
	})
	var b strings.Builder
	for i, line := range text {
		if above[i] && i > 0 && strings.TrimSpace(text[i-1]) != "" {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// units calls visit for the keys and items that have lines of their own, in the order of the file. first is
// whether nothing stands before it in its object or list, long whether it is to stand apart.
func units(root *yaml.Node, visit func(n *yaml.Node, first, long bool)) {
	var walk func(n *yaml.Node, depth int, apart bool)
	walk = func(n *yaml.Node, depth int, apart bool) {
		if n.Style&yaml.FlowStyle != 0 {
			return
		}
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				visit(key, i == 0, depth == 0 && block(value))
				walk(value, depth+1, depth == 0 && key.Value == "methodConfig")
			}
		case yaml.SequenceNode:
			for i, item := range n.Content {
				visit(item, i == 0, apart && block(item))
				walk(item, depth+1, false)
			}
		default: // has no lines of its own
		}
	}
	for _, n := range root.Content {
		walk(n, 0, false)
	}
}

// block reports whether a value has several lines.
func block(n *yaml.Node) bool {
	return (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0
}

// top is the index of the first line of the comments right above a line, and as far in as it; lines count
// from 1, and in JSON there are none.
func top(text []string, line int) int {
	at := max(min(line, len(text))-1, 0)
	in := indent(text[at])
	for at > 0 {
		above := strings.TrimSpace(text[at-1])
		dash := above == "-" || strings.HasPrefix(above, "- #")
		comment := strings.HasPrefix(above, "#") && indent(text[at-1]) == in
		if !dash && !comment {
			break
		}
		at--
		in = indent(text[at])
	}
	return at
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
