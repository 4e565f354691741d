// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

func TestSchemaTakesValidFiles(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for _, pattern := range []string{"../../policy/testdata/good/*", "../../examples/*/retry.yaml", "../../lab/storm/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, path := range paths {
			files[path] = read(t, path)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		for i, block := range strings.Split(string(read(t, page)), "\n```yaml")[1:] {
			head, block, _ := strings.Cut(block, "\n")
			block, _, _ = strings.Cut(block, "\n```")
			if !strings.Contains(head, "bad") {
				files[fmt.Sprintf("%s, block %d", page, i+1)] = []byte(block)
			}
		}
	}
	schema, checked := compiled(t), 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := policy.Parse(name, files[name]); err != nil {
			continue // a part of a file
		}
		checked++
		v, ok := fromFile(t, files[name])
		if !ok {
			t.Fatalf("%s: cannot be read", name)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if checked < 8 {
		t.Errorf("checked %d files; want 8 or more", checked)
	}
}

func TestSchemaDescribesEveryKey(t *testing.T) {
	t.Parallel()
	schema, ok := fromJSON(t, read(t, "../../proto/stagger/policy/v1/policy.json")).(object)
	if !ok {
		t.Fatal("policy.json is no object")
	}
	if keys := describe(t, "", (*policyv1.PolicyFile)(nil).ProtoReflect().Descriptor(), schema); keys < 50 {
		t.Errorf("compared %d keys; want all", keys)
	}
}

// describe compares a message with its schema, and counts the keys.
func describe(t *testing.T, path string, m protoreflect.MessageDescriptor, schema object) (keys int) {
	t.Helper()
	if schema["additionalProperties"] != false {
		t.Errorf("%s accepts unknown keys", path)
	}
	properties, _ := schema["properties"].(object)
	if len(properties) != m.Fields().Len() {
		t.Errorf("%s has %d keys; want %d", path, len(properties), m.Fields().Len())
	}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		keys++
		key := path + "." + f.JSONName()
		s, _ := properties[f.JSONName()].(object)
		if text, _ := s["description"].(string); len(text) < 10 {
			t.Errorf("%s has the description %q", key, text)
		}
		if f.IsList() {
			s, _ = s["items"].(object)
		}
		if f.Message() != nil && f.Message().ParentFile() == m.ParentFile() {
			keys += describe(t, key, f.Message(), s)
		}
	}
	return keys
}
