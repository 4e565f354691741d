// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

var format = document.Format{Name: "list of things", Key: "things"}

func parse(text string) (*document.Node, *document.Report) {
	r := document.NewReport("f")
	return document.Parse(r, []byte(text), format), r
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"nothing":         {"", "f:1:1: is empty; a list of things has keys such as things"},
		"a comment":       {"# nothing", "f:1:1: is empty; a list of things has keys such as things"},
		"null":            {"null", "f:1:1: is empty; a list of things has keys such as things"},
		"a list":          {"- things", "f:1:1: must be a map of keys such as things"},
		"two documents":   {"a: 1\n---\nb: 2", "f:2:1: a second document begins here; a list of things has only one"},
		"invalid YAML":    {"a: [", "f:2:1: is not YAML: while parsing a flow node: did not find expected node content"},
		"invalid JSON":    {"{\"a\": 1,\n]", "f:2:1: is not JSON: invalid character ']' looking for beginning of object key string; a text that begins with \"{\" is read as JSON, not YAML"},
		"a duplicate key": {"a: 1\na: 2", "f:2:1: a: is given twice, first at line 1, column 1; keep one"},
		"a number as key": {"a: 1\n2: 3", "f:2:1: the key \"2\" must be a string; put it in quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, r := parse(row.text); r.Err() == nil || r.Err().Error() != row.want {
				t.Errorf("Parse(%q) = %v; want %s", row.text, r.Err(), row.want)
			}
		})
	}
}

func TestParseMakesOneTreeOfJSONAndYAML(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"a": [1, "x", null, true], "b": {"c": 1.5e3}}`,
		"a: [1, x, null, True]\nb: {c: 1.5e3}",
		"a: &list [1, 'x', ~, true]\nb:\n  c: 1.5e3",
	} {
		n, r := parse(text)
		if r.Err() != nil {
			t.Fatalf("Parse(%q) = %v", text, r.Err())
		}
		want := map[string]any{"a": []any{1.0, "x", nil, true}, "b": map[string]any{"c": 1500.0}}
		if got := r.Plain("", n); r.Err() != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) is %v; want %v", text, got, want)
		}
	}
}

func TestParseKeepsPlaces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"größe:\n  things: [1, 2]", "{\"größe\":\n  {\"t\": [1, 2]}}"} {
		_, r := parse(text)
		n := r.Node("größe.things[1]")
		if n == nil {
			n = r.Node("größe.t[1]")
		}
		if n.At.Line != 2 || n.At.Column < 11 || n.Text != "2" {
			t.Errorf("%s: got %+v; want 2 in line 2", text, n)
		}
	}
	if _, r := parse("a: [1]"); r.Node("a[1]") != nil || r.Node("a.b") != nil || r.Written("b") || !r.Written("a[0]") {
		t.Error("found fields that are not there")
	}
}

func TestPlainReportsWhatJSONCannotHold(t *testing.T) {
	t.Parallel()
	n, r := parse("a: [0x10, .inf]\nb: &b {c: 1}\nd: {<<: *b}")
	r.Plain("", n)
	want := `f:1:5: a[0]: 0x10: must be a finite decimal number as in JSON, such as 1.5
f:1:11: a[1]: .inf: must be a finite decimal number as in JSON, such as 1.5
f:3:5: d.<<: merge keys are not supported; write the keys out`
	if got := r.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// JSON that the package reads has the same value for encoding/json.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"{}", `{"a": [1, {"b": "\u00e4"}], "c": null}`, "a: &a [x, *a]", "a: |\n  b\n", "? [a]\n: b", "<<: {a: 1}", "a: 0x10", "\x00", "{\"a\": 1e999}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := document.NewReport("f")
		n := document.Parse(r, data, format)
		for _, d := range r.Errors() {
			if d.Message == "" || strings.Contains(d.Message, "%!") {
				t.Errorf("%q: %+v", data, d)
			}
		}
		if n == nil || r.Err() != nil {
			return
		}
		got := r.Plain("", n)
		var want any
		if r.Err() != nil || !json.Valid(data) || json.Unmarshal(data, &want) != nil {
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v", data, got)
		}
	})
}
