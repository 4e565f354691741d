// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// jsonNumber is what JSON takes for one; YAML has more forms, such as 0x10 and 1_000.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// writeJSON writes a part of the tree that protobuf reads; false if it has reported why not.
func (r *reader) writeJSON(b *bytes.Buffer, path string, n *yaml.Node, depth int) bool {
	if n = r.follow(n, depth); n == nil {
		return false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.writeList(b, "{}", len(n.Content)/2, func(i int) bool {
			key := n.Content[2*i]
			if key.Kind != yaml.ScalarNode {
				r.report(key.Line, key.Column, path, "", "a key must be a text")
				return false
			}
			quote(b, key.Value)
			b.WriteByte(':')
			return r.writeJSON(b, path, n.Content[2*i+1], depth+1)
		})
	case yaml.SequenceNode:
		return r.writeList(b, "[]", len(n.Content), func(i int) bool { return r.writeJSON(b, path, n.Content[i], depth+1) })
	default:
		return r.writeScalar(b, path, n)
	}
}

func (r *reader) writeList(b *bytes.Buffer, brackets string, length int, each func(int) bool) bool {
	b.WriteByte(brackets[0])
	for i := range length {
		if i > 0 {
			b.WriteByte(',')
		}
		if !each(i) {
			return false
		}
	}
	b.WriteByte(brackets[1])
	return true
}

func (r *reader) writeScalar(b *bytes.Buffer, path string, n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch tag := n.ShortTag(); {
	case n.Style&yaml.TaggedStyle != 0:
		r.wrong(path, n, "the tag %s is not understood; leave it out", shorten(tag))
		return false
	case n.Style&quoted != 0:
		quote(b, n.Value)
	case tag == "!!null":
		b.WriteString("null")
	case tag == "!!bool":
		b.WriteString(strings.ToLower(n.Value))
	case jsonNumber.MatchString(n.Value):
		b.WriteString(n.Value)
	case tag == "!!int", tag == "!!float":
		r.wrong(path, n, "must be a finite decimal number as in JSON, such as 1.5")
		return false
	default:
		quote(b, n.Value)
	}
	return true
}

func quote(b *bytes.Buffer, s string) {
	text, _ := json.Marshal(s) //nolint:errchkjson // a text always can
	b.Write(text)
}
