// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// lineWidth is how long a line may be in which a list or an object stands.
const lineWidth = 120

// YAML is the value as a YAML document. Lists and objects that fit in a line stand in one.
func (n *Node) YAML() string {
	var b strings.Builder
	n.writeBlock(&b, 0)
	return b.String()
}

// writeBlock writes a value that does not stand in one line, from the column of its indent on, and ends the line.
func (n *Node) writeBlock(b *strings.Builder, indent int) {
	next := func(i int) {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", indent))
		}
	}
	switch {
	case n.Kind == Object && len(n.Entries) > 0:
		for i, e := range n.Entries {
			next(i)
			b.WriteString(yamlText(e.Key) + ":")
			e.Value.writeAfter(b, indent, indent+len(e.Key)+1)
		}
	case n.Kind == List && len(n.Items) > 0:
		for i, item := range n.Items {
			next(i)
			b.WriteString("- ")
			if flow := item.flow(); indent+2+len(flow) <= lineWidth {
				b.WriteString(flow + "\n")
			} else {
				item.writeBlock(b, indent+2)
			}
		}
	default:
		b.WriteString(n.flow() + "\n")
	}
}

// writeAfter writes the value of a key that ends in a column.
func (n *Node) writeAfter(b *strings.Builder, indent, column int) {
	flow := n.flow()
	if n.Kind != Object && n.Kind != List || column+1+len(flow) <= lineWidth || flow == "{}" || flow == "[]" {
		b.WriteString(" " + flow + "\n")
		return
	}
	b.WriteString("\n" + strings.Repeat(" ", indent+2))
	n.writeBlock(b, indent+2)
}

// flow is the value in one line.
func (n *Node) flow() string {
	parts := make([]string, 0, len(n.Items)+len(n.Entries))
	switch n.Kind {
	case Object:
		for _, e := range n.Entries {
			parts = append(parts, yamlText(e.Key)+": "+e.Value.flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case List:
		for _, item := range n.Items {
			parts = append(parts, item.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Text:
		return yamlText(n.Text)
	case Bool, Number:
		return n.Text
	default:
		return "null"
	}
}

// plainText needs no quotes anywhere in YAML: words that begin with a letter, paths, and times
// such as 1.5ms.
var plainText = regexp.MustCompile(`^((\.{0,2}/)*[A-Za-z_][\w./+-]*( [\w./+(-][\w./+()-]*)*|[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)([0-9.]+(ns|us|ms|s|m|h))*)$`)

// plainWords are those that mean something else, to readers of any version.
var plainWords = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)

// yamlText is a text as YAML has it, in quotes if it needs them.
func yamlText(s string) string {
	if plainText.MatchString(s) && !plainWords.MatchString(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
