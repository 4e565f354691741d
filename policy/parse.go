// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"crypto/sha256"
	"strings"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Parse reads a policy file: a gRPC service config, in JSON or YAML, with stagger's own keys beside
// gRPC's (proto/stagger/policy/v1 lists them all).
//
// file is the name that problems show; nothing is opened. A name that ends in ".json", or a text
// that begins with "{", is read as JSON, everything else as YAML. The error is an [*Error] with all
// that is wrong in the file, each with line and column, what was found and what would be right.
// Nothing is passed over or rounded in silence: unknown keys, keys that stand twice, and numbers in
// quotes are errors, as gRFC A6 has it. A file has at most 1 MiB, 50,000 values and 32 levels.
//
// What is not wrong but may surprise is in [Set.Warnings]. Parse is safe for concurrent use, and
// keeps no reference to data.
func Parse(file string, data []byte) (*Set, error) {
	config, ps, warnings := parse(file, data)
	if config == nil {
		return nil, ps.err()
	}
	set, err := newSet(*config, ps, warnings)
	if err == nil {
		set.digest = sha256.Sum256(data)
	}
	return set, err
}

// parse reads what a file says, with what is wrong so far; nil if that is all there is to say.
func parse(file string, data []byte) (c *Config, ps, warnings *problems) {
	src := &source{file: file, unread: map[string]bool{}, above: map[string]bool{}, inherited: map[string]string{}}
	ps, warnings = &problems{source: src}, &problems{source: src, severity: SeverityWarning}
	src.root = read(ps, data)
	if src.root == nil {
		return nil, ps, warnings
	}
	var f policyv1.PolicyFile
	decode(ps, "", src.root, f.ProtoReflect())
	config := convert(ps, &f)
	checkChannel(ps, config.channel)
	warnNotDone(warnings)
	warnSpelling(warnings, &f)
	return &config, ps, warnings
}

// read makes a tree of a file; nil if that is not possible.
func read(ps *problems, data []byte) *node {
	if !checkText(ps, data) {
		return nil
	}
	begin := bytes.TrimLeft(data, " \t\r\n")
	if len(begin) == 0 {
		ps.at(position{1, 1}, "", empty)
		return nil
	}
	var n *node
	if begin[0] == '{' || isJSON(ps.file) {
		n = readJSON(ps, data)
	} else {
		n = readYAML(ps, data)
	}
	switch {
	case n == nil, n.kind == object:
		return n
	case n.kind == null:
		ps.at(n.at, "", empty)
	case n.kind != broken:
		ps.at(n.at, "", "must be a map of keys such as methodConfig")
	}
	return nil
}

func isJSON(file string) bool { return strings.HasSuffix(file, ".json") }

const empty = "is empty; a policy file has keys such as methodConfig, or is {}"
