// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// readYAML makes a tree of a YAML text; nil if there is none.
func readYAML(ps *problems, data []byte) *node {
	if !checkBreaks(ps, data) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		ps.notYAML(data, err)
		return nil
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		return &node{kind: null, at: position{1, 1}}
	case err != nil:
		ps.notYAML(data, err)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		ps.at(position{second.Line, second.Column}, "", "a second document begins here; a policy file is one")
		return nil
	case !errors.Is(err, io.EOF):
		ps.notYAML(data, err)
		return nil
	}
	r := yamlReader{ps: ps}
	n := r.value("", first.Content[0], 0)
	if r.stopped {
		return nil
	}
	return n
}

// yamlReader follows aliases, within a limit.
type yamlReader struct {
	ps      *problems
	limit   limit
	stopped bool
}

func (r *yamlReader) value(path string, y *yaml.Node, depth int) *node {
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	n := &node{at: position{y.Line, y.Column}, text: y.Value, raw: y.Value}
	if fault := r.limit.take(depth, y.Value); fault != "" {
		if !r.stopped {
			r.ps.at(n.at, "", "%s", fault)
		}
		r.stopped = true
		return n
	}
	if tag := tagOf(y); tag != "" {
		r.ps.at(n.at, path, "the tag %q is not understood; leave it out", shorten(tag))
		return n
	}
	switch y.Kind {
	case yaml.SequenceNode:
		n.kind = list
		for i := 0; i < len(y.Content) && !r.stopped; i++ {
			n.items = append(n.items, r.value(item(path, i), y.Content[i], depth+1))
		}
	case yaml.MappingNode:
		n.kind = object
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
func scalar(n *node, y *yaml.Node) {
	n.kind = text
	if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		n.raw = strconv.Quote(n.text)
		return
	}
	switch tag := y.ShortTag(); {
	case tag == "!!null":
		n.kind = null
	case tag == "!!bool":
		n.kind = boolean
	case tag == "!!int", tag == "!!float", jsonNumber.MatchString(n.text):
		n.kind = number
	}
}

func (r *yamlReader) entry(n *node, path string, key, value *yaml.Node, depth int) {
	at := position{key.Line, key.Column}
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	switch tag := key.ShortTag(); {
	case key.Kind != yaml.ScalarNode || tagOf(key) != "":
		r.ps.at(at, path, "a key must be a text")
		return
	case tag != "!!str" && tag != "!!merge":
		r.ps.at(at, path, "the key %q must be a text; put it in quotes", shorten(key.Value))
		return
	}
	if key.ShortTag() == "!!merge" && isFree(path) {
		r.ps.at(at, under(path, key.Value), merging)
		return
	}
	r.limit.bytes += len(key.Value)
	e := entry{key: key.Value, at: at, value: r.value(under(path, key.Value), value, depth+1)}
	if first := n.put(e); first != nil && !r.stopped {
		r.ps.twice(at, under(path, key.Value), first.at)
	}
}

const merging = "merging is not understood; write the keys out"

// isFree reports whether any key may stand at a path: what is there is for gRPC. Elsewhere an unknown key
// is found when it is decoded.
func isFree(path string) bool {
	top, _, _ := strings.Cut(path, ".")
	top, _, _ = strings.Cut(top, "[")
	fd := (*policyv1.PolicyFile)(nil).ProtoReflect().Descriptor().Fields().ByJSONName(top)
	return fd != nil && fd.Message() != nil && fd.Message().ParentFile().Path() == "google/protobuf/struct.proto"
}
