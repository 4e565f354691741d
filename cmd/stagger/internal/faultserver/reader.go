// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	"github.com/stagger-go/stagger/policy"
)

// Limits, against files that are made to be large: aliases multiply.
const (
	maxNodes = 50_000
	maxText  = 4 << 20 // bytes, of all values
	maxDepth = 64
)

// reader makes a message of a tree.
type reader struct {
	file     string
	api      *control.API
	places   map[string]*yaml.Node // of the fields
	problems []policy.Diagnostic
	nodes    int
	text     int  // bytes
	full     bool // there is too much, or it is too deep
}

// message reads the keys of a map.
func (r *reader) message(path string, n *yaml.Node, m protoreflect.Message, depth int) {
	r.places[path] = n
	if n = r.follow(n, depth); n == nil {
		return
	}
	d := m.Descriptor()
	if n.Kind != yaml.MappingNode {
		r.wrong(path, n, "must be a map with keys such as %s", d.Fields().Get(0).JSONName())
		return
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content) && !r.full; i += 2 {
		key := n.Content[i]
		if fd := r.key(path, key, m, seen); fd != nil {
			seen[key.Value] = key
			r.field(join(path, key.Value), n.Content[i+1], m, fd, depth+1)
		}
	}
}

// key is the field of a key; nil if it has been reported.
func (r *reader) key(path string, key *yaml.Node, m protoreflect.Message, seen map[string]*yaml.Node) protoreflect.FieldDescriptor {
	complain := func(format string, args ...any) protoreflect.FieldDescriptor {
		r.report(key.Line, key.Column, join(path, key.Value), "", format, args...)
		return nil
	}
	if key.Kind != yaml.ScalarNode {
		return complain("a key must be a text")
	}
	fd := m.Descriptor().Fields().ByJSONName(key.Value)
	if fd == nil {
		return complain("unknown key; %s", suggest(key.Value, m.Descriptor()))
	}
	if first := seen[key.Value]; first != nil {
		return complain("stands twice, first at line %d, column %d; keep one", first.Line, first.Column)
	}
	if other := rival(m, fd); other != nil {
		return complain("stands beside %s: keep one of the two", other.JSONName())
	}
	return fd
}

// rival is the member of fd's oneof that is set already, or nil.
func rival(m protoreflect.Message, fd protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if fd.ContainingOneof() == nil {
		return nil
	}
	return m.WhichOneof(fd.ContainingOneof())
}

func (r *reader) field(path string, n *yaml.Node, m protoreflect.Message, fd protoreflect.FieldDescriptor, depth int) {
	if !fd.IsList() {
		if v := r.value(path, n, m, fd, m.NewField(fd), depth); v.IsValid() {
			m.Set(fd, v)
		}
		return
	}
	r.places[path] = n
	if n = r.follow(n, depth); n == nil {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.wrong(path, n, "must be a list, in brackets or one entry a line after a dash")
		return
	}
	list := m.Mutable(fd).List()
	for i := 0; i < len(n.Content) && !r.full; i++ {
		if v := r.value(fmt.Sprintf("%s[%d]", path, i), n.Content[i], m, fd, list.NewElement(), depth+1); v.IsValid() {
			list.Append(v)
		}
	}
}

// value is invalid if it has been reported.
func (r *reader) value(
	path string, n *yaml.Node, m protoreflect.Message, fd protoreflect.FieldDescriptor, blank protoreflect.Value, depth int,
) protoreflect.Value {
	if fd.Message() != nil && fd.Message().ParentFile().Package() == m.Descriptor().ParentFile().Package() {
		r.message(path, n, blank.Message(), depth)
		return blank
	}
	return r.leaf(path, n, fd, m)
}

// follow is what an alias stands for; nil when there is too much.
func (r *reader) follow(n *yaml.Node, depth int) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	r.nodes++
	r.text += len(n.Value)
	if !r.full && (r.nodes > maxNodes || r.text > maxText || depth > maxDepth) {
		r.full = true
		r.report(n.Line, n.Column, "", "", "has more than %d values or 4 MiB of text, aliases followed, or is more than %d deep", maxNodes, maxDepth)
	}
	if r.full {
		return nil
	}
	return n
}

// wrong reports a value.
func (r *reader) wrong(path string, n *yaml.Node, format string, args ...any) {
	value := ""
	if n.Kind == yaml.ScalarNode {
		value = cmp.Or(shorten(n.Value), "null")
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			value = fmt.Sprintf("%q", shorten(n.Value))
		}
	}
	at := r.place(path)
	r.report(at.Line, at.Column, path, value, format, args...)
}
