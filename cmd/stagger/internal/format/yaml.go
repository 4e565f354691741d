// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// YAML's names for kinds of values, and its word for none.
const (
	textTag = "!!str"
	nullTag = "!!null"
	null    = "null"
)

func readYAML(data []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Load(data, &root, yaml.WithSingleDocument()); err != nil {
		return nil, err
	}
	open(&root)
	return &root, nil
}

func writeYAML(root *yaml.Node, gaps gaps) ([]byte, error) {
	out, err := yaml.Dump(root, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1), yaml.WithUnicode(true))
	if err != nil {
		return nil, err
	}
	again, err := readYAML(out)
	if err != nil {
		return nil, err
	}
	return gaps.insert(out, root, again), nil
}

const collectionInBraces = yaml.FlowStyle

// open gives what stands in brackets over several lines one line an item, without them, and what has no
// value the word for that: the writer would put quotes there.
func open(n *yaml.Node) (end int) {
	end = n.Line
	if n.Kind == yaml.ScalarNode && n.ShortTag() == nullTag {
		n.Value = null
	}
	for _, c := range n.Content {
		end = max(end, open(c))
	}
	if n.Style&collectionInBraces != 0 && end > n.Line {
		n.Style &^= collectionInBraces
	}
	return end
}

// plain are texts that every YAML reader takes for texts without quotes; words are those of them that some
// reader takes for something else.
var (
	plain = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+)?s)$`)
	words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", null}
)

const quotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// unquote takes quotes away that are not needed, and makes those that are needed the same everywhere.
func unquote(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Style&quotes == 0 {
		return
	}
	n.Style &^= quotes
	if !plain.MatchString(n.Value) || slices.Contains(words, strings.ToLower(n.Value)) {
		n.Style |= yaml.DoubleQuotedStyle
	}
}

// reanchor sees to it that an anchor stands before its aliases, whatever has been moved.
func reanchor(n *yaml.Node, seen map[*yaml.Node]bool) {
	for i, c := range n.Content {
		switch {
		case c.Kind == yaml.AliasNode && !seen[c.Alias]:
			target := c.Alias
			moved := *target // with the comments of its new place, and the alias with those of the old one
			moved.HeadComment, moved.LineComment, moved.FootComment = c.HeadComment, c.LineComment, c.FootComment
			seen[target] = true
			n.Content[i] = &moved
			seen[&moved] = true
			c = &moved
			reanchor(c, seen)
		case c.Anchor != "" && seen[c]:
			n.Content[i] = &yaml.Node{
				Kind: yaml.AliasNode, Value: c.Anchor, Alias: c,
				HeadComment: c.HeadComment, LineComment: c.LineComment, FootComment: c.FootComment,
			}
		default:
			seen[c] = true
			reanchor(c, seen)
		}
	}
}

// lines are those of a text, without line ends.
func lines(data []byte) []string {
	return strings.Split(string(bytes.TrimRight(data, "\n")), "\n")
}
