// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/internal/document"
)

// Short objects and lists are written in one line, long ones over several.
func TestNodeYAML(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 20) + "word"
	n, _ := parse(`{"title": "no", "a": {"b": 1.5, "c": [true, null, "x y", "1.5ms", "7"]}, "list": [{"name": "` + long + `", "other": {}, "more": [{"k": "` + long + `"}, 2]}, []], "none": []}`)
	want := `title: "no"
a: {b: 1.5, c: [true, null, x y, 1.5ms, "7"]}
list:
  - name: ` + long + `
    other: {}
    more:
      - {k: ` + long + `}
      - 2
  - []
none: []
`
	if got := n.YAML(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func node() *rapid.Generator[*document.Node] {
	texts := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9 .:/#&*?{}"'\\,+\[\]%@!|>~=-]{0,12}`), rapid.String(), rapid.SampledFrom([]string{
		"yes", "Null", "~", "1e3", "0x10", "1:30", "2001-01-01", "<<", "1_000", ".inf", "=", "- a", "a: b", "a #b", " a", "a ", "é", "\u2028", "\x7f", "\U000e0001", "---", "20ms", "1h0m0s", "µs",
	}))
	scalar := rapid.Custom(func(t *rapid.T) *document.Node {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return &document.Node{Kind: document.Bool, Text: "true"}
		case 1:
			return &document.Node{Kind: document.Number, Text: rapid.SampledFrom([]string{"0", "-1.5", "12345678901234567890"}).Draw(t, "number")}
		case 2:
			return &document.Node{Kind: document.Null}
		default:
			return &document.Node{Kind: document.Text, Text: texts.Draw(t, "text")}
		}
	})
	var deep func(depth int) *rapid.Generator[*document.Node]
	deep = func(depth int) *rapid.Generator[*document.Node] {
		if depth == 0 {
			return scalar
		}
		inner := deep(depth - 1)
		return rapid.OneOf(scalar, rapid.Custom(func(t *rapid.T) *document.Node {
			return &document.Node{Kind: document.List, Items: rapid.SliceOfN(inner, 0, 5).Draw(t, "items")}
		}), rapid.Custom(func(t *rapid.T) *document.Node {
			n := &document.Node{Kind: document.Object}
			for range rapid.IntRange(0, 5).Draw(t, "entries") {
				n.AddEntry(document.Entry{Key: texts.Draw(t, "key"), Value: inner.Draw(t, "value")})
			}
			return n
		}))
	}
	return deep(3)
}

// A written document is read as the same value.
func TestNodeYAMLIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &document.Node{Kind: document.Object}
		n.AddEntry(document.Entry{Key: "value", Value: node().Draw(t, "node")})
		text := n.YAML()
		r := document.NewReport("f.yaml")
		got := document.Parse(r, []byte(text), document.Format{})
		if got == nil || r.Err() != nil {
			t.Fatalf("%s\nis not read: %v", text, r.Err())
		}
		want, _ := n.JSON(r, "")
		if is, _ := got.JSON(r, ""); string(is) != string(want) {
			t.Fatalf("%s\nis read as %s; want %s", text, is, want)
		}
	})
}
