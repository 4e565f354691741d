// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads text with positions: policy files, the scenarios of the simulator and the scripts of
// the fault server. JSON and YAML become one tree of [Node] values, within limits that no hostile file passes.
// A [Decoder] makes a protobuf message of it, [Fields] read it into variables of a program. What is wrong goes into a [Report], each [Diagnostic] with file,
// line, column, field, value and what would be right.
package document

import (
	"bytes"
	"strings"
)

// Format is a kind of document.
type Format struct {
	Name    string // "policy file"
	Key     string // one that it has: "methodConfig"
	MayLack bool   // it may be {}
}

// Parse makes a tree of a document, which is an object, and gives it to the report; nil if that is not possible.
// A file whose name ends in ".json", or whose text begins with "{", is read as JSON, everything else as YAML.
func Parse(r *Report, data []byte, f Format) *Node {
	if !checkText(r, data) {
		return nil
	}
	begin := bytes.TrimLeft(data, " \t\r\n")
	if len(begin) == 0 {
		r.ErrorAt(Position{1, 1}, "", "%s", f.empty())
		return nil
	}
	var n *Node
	if begin[0] == '{' || isJSON(r.file) {
		n = readJSON(r, data)
	} else {
		n = readYAML(r, data, f)
	}
	switch {
	case n == nil, n.Kind == Broken:
		return nil
	case n.Kind == Null:
		r.ErrorAt(n.At, "", "%s", f.empty())
		return nil
	case n.Kind != Object:
		r.ErrorAt(n.At, "", "must be a map of keys such as %s", f.Key)
		return nil
	}
	r.SetRoot(n)
	return n
}

func isJSON(file string) bool { return strings.HasSuffix(file, ".json") }

func (f Format) empty() string {
	text := "is empty; a " + f.Name + " has keys such as " + f.Key
	if f.MayLack {
		text += ", or is {}"
	}
	return text
}
