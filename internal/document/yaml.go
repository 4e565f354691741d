// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// readYAML makes a tree of a YAML text; nil if there is none.
func readYAML(r *Report, data []byte, f Format) *Node {
	if !checkBreaks(r, data) {
		return nil
	}
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
		r.ErrorAt(Position{second.Line, second.Column}, "", "a second document begins here; a %s is one", f.Name)
		return nil
	case !errors.Is(err, io.EOF):
		notYAML(r, data, err)
		return nil
	}
	y := yamlReader{report: r}
	n := y.value("", first.Content[0], 0)
	if y.stopped {
		return nil
	}
	return n
}

// notYAML says where and why a text is not YAML.
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

func (r *yamlReader) value(path string, y *yaml.Node, depth int) *Node {
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	n := &Node{At: Position{y.Line, y.Column}, Text: y.Value, Raw: y.Value}
	if message := r.limit.take(depth, y.Value); message != "" {
		if !r.stopped {
			r.report.ErrorAt(n.At, "", "%s", message)
		}
		r.stopped = true
		return n
	}
	if tag := tagOf(y); tag != "" {
		r.report.ErrorAt(n.At, path, "the tag %q is not understood; leave it out", Shorten(tag))
		return n
	}
	switch y.Kind {
	case yaml.SequenceNode:
		n.Kind = List
		for i := 0; i < len(y.Content) && !r.stopped; i++ {
			n.Items = append(n.Items, r.value(Item(path, i), y.Content[i], depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Object
		for i := 0; i+1 < len(y.Content) && !r.stopped; i += 2 {
			r.entry(n, path, y.Content[i], y.Content[i+1], depth)
		}
	default:
		scalar(n, y)
	}
	return n
}

// tagOf is the tag that is written before a value, "!" too, or "".
func tagOf(y *yaml.Node) string {
	switch {
	case y.Tag == "!":
		return y.Tag
	case y.Style&yaml.TaggedStyle != 0:
		return y.ShortTag()
	}
	return ""
}

// scalar reads what YAML 1.2 and JSON agree on; a date, which only YAML knows, is a text.
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

func (r *yamlReader) entry(n *Node, path string, key, value *yaml.Node, depth int) {
	at := Position{key.Line, key.Column}
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	tag := key.ShortTag()
	switch {
	case key.Kind != yaml.ScalarNode || tagOf(key) != "":
		r.report.ErrorAt(at, path, "a key must be a text")
		return
	case tag != "!!str" && tag != "!!merge":
		r.report.ErrorAt(at, path, "the key %q must be a text; put it in quotes", Shorten(key.Value))
		return
	}
	r.limit.bytes += len(key.Value)
	e := Entry{Key: key.Value, At: at, Value: r.value(Under(path, key.Value), value, depth+1), merge: tag == "!!merge"}
	if first := n.Put(e); first != nil && !r.stopped {
		r.report.twice(at, Under(path, key.Value), first.At)
	}
}

// merging is said of YAML's <<, where it is not an unknown key: see [Decoder] and [Node.JSON].
const merging = "merging is not understood; write the keys out"

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
