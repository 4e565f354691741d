// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// readYAML returns the tree of a YAML text, or nil if there is none.
func readYAML(r *Report, data []byte, f Format) *Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		notYAML(r, data, err)
		return nil
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		return &Node{Kind: Null, At: Position{1, 1}}
	case err != nil:
		notYAML(r, data, err)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		r.ErrorAt(Position{second.Line, second.Column}, "", "a second document begins here; a %s has only one", f.Name)
		return nil
	case !errors.Is(err, io.EOF):
		notYAML(r, data, err)
		return nil
	}
	y := yamlReader{report: r}
	n := y.readValue("", first.Content[0], 0)
	if y.stopped {
		return nil
	}
	return n
}

// notYAML reports where and why a text is not YAML.
func notYAML(r *Report, data []byte, err error) {
	syntax, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.ErrorAt(Position{1, 1}, "", "is not YAML: %v", err)
		return
	}
	message := syntax.Message
	if syntax.ContextMsg != "" {
		message = syntax.ContextMsg + ": " + message
	}
	if begin := syntax.ContextMark; begin.Line > 0 && begin != syntax.Mark {
		message += fmt.Sprintf("; see line %d, column %d", begin.Line, begin.Column)
	}
	if isTab(data, syntax.Mark.Line) {
		message += "; indent with spaces, not with tabs"
	}
	r.ErrorAt(Position{syntax.Mark.Line, syntax.Mark.Column}, "", "is not YAML: %s", message)
}

// isTab reports whether a line is indented with a tab.
func isTab(data []byte, line int) bool {
	for range line - 1 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return bytes.HasPrefix(bytes.TrimLeft(data, " "), []byte("\t"))
}

// yamlReader follows aliases, within a limit.
type yamlReader struct {
	report  *Report
	limit   limit
	stopped bool
}

func (r *yamlReader) readValue(path string, y *yaml.Node, depth int) *Node {
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	n := &Node{At: Position{y.Line, y.Column}, Text: y.Value, Raw: y.Value}
	if message := r.limit.countValue(depth, y.Value); message != "" {
		if !r.stopped {
			r.report.ErrorAt(n.At, "", "%s", message)
		}
		r.stopped = true
		return n
	}
	if tag := tagOf(y); tag != "" {
		r.report.ErrorAt(n.At, path, "the tag %q is not supported; remove it", Shorten(tag))
		return n
	}
	switch y.Kind {
	case yaml.SequenceNode:
		n.Kind = List
		for i := 0; i < len(y.Content) && !r.stopped; i++ {
			n.Items = append(n.Items, r.readValue(Item(path, i), y.Content[i], depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Object
		for i := 0; i+1 < len(y.Content) && !r.stopped; i += 2 {
			r.addEntry(n, path, y.Content[i], y.Content[i+1], depth)
		}
	default:
		scalar(n, y)
	}
	return n
}

// tagOf returns the tag that is written before a value, even "!", or "".
func tagOf(y *yaml.Node) string {
	switch {
	case y.Tag == "!":
		return y.Tag
	case y.Style&yaml.TaggedStyle != 0:
		return y.ShortTag()
	}
	return ""
}

// scalar reads the forms on which YAML 1.2 and JSON agree. A date, which only YAML has, is a string.
func scalar(n *Node, y *yaml.Node) {
	n.Kind = Text
	if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		n.Raw = strconv.Quote(n.Text)
		return
	}
	switch tag := y.ShortTag(); {
	case tag == "!!null":
		n.Kind = Null
	case tag == "!!bool":
		n.Kind = Bool
	case tag == "!!int", tag == "!!float", jsonNumber.MatchString(n.Text):
		n.Kind = Number
	}
}

func (r *yamlReader) addEntry(n *Node, path string, key, value *yaml.Node, depth int) {
	at := Position{key.Line, key.Column}
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	tag := key.ShortTag()
	switch {
	case key.Kind != yaml.ScalarNode || tagOf(key) != "":
		r.report.ErrorAt(at, path, "a key must be a string")
		return
	case tag != "!!str" && tag != "!!merge":
		r.report.ErrorAt(at, path, "the key %q must be a string; put it in quotes", Shorten(key.Value))
		return
	}
	r.limit.bytes += len(key.Value)
	e := Entry{Key: key.Value, At: at, Value: r.readValue(Under(path, key.Value), value, depth+1)}
	if first := n.AddEntry(e); first != nil && !r.stopped {
		r.report.twice(at, Under(path, key.Value), first.At)
	}
}
