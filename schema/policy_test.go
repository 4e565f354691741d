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
	for _, pattern := range []string{"../policy/testdata/good/*", "../examples/*/retry.yaml", "../lab/storm/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, path := range paths {
			files[path] = read(t, path)
		}
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md") {
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
	schema, ok := fromJSON(t, read(t, "policy.json")).(object)
	if !ok {
		t.Fatal("policy.json is no object")
	}
	if keys := describe(t, "", (*policyv1.PolicyFile)(nil).ProtoReflect().Descriptor(), schema); keys < 80 {
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

// unsayable are the files of policy/testdata/bad that are valid in editors: errors that depend on other entries, decimals,
// and how numbers are written.
var unsayable = []string{
	"budgets/a budget nobody declared",
	"budgets/the name for no budget in small letters",
	"budgets/two of one name",
	"budgets/a ratio with too many decimals",
	"budgets/a pool with two rates",
	"channel/a merge where any key is taken",
	"durations/longer than Go can count",
	"hedging/a longest delay below the shortest",
	"json/a number with a point where a whole one belongs",
	"json/a number that a double would round to 0",
	"names/the same name in one entry",
	"names/the same name in two entries",
	"names/everything, twice, in all its forms",
	"refused/an ErrorInfo that stands behind one that fits more",
	"refused/not processed, of methods that are not named",
	"refused/not processed, by a policy that two entries share",
	"retry/codes of their own that are not retryable",
	"retry/codes in two settings",
	"retry/more attempts after a code than the policy has",
	"retry/a growth of its own does not go with the policy's multiplier",
	"retry/a code's own multiplier does not go with the policy's growth",
	"yaml/two documents",
	"yaml/a tag",
	"yaml/a tag of the file's own",
	"yaml/a merge key",
	"yaml/a tag that says what is so anyway",
	"yaml/a key with a tag without a name",
	"yaml/a tag without a name before a list",
	"yaml/a binary value",
	"yaml/a set",
	"yaml/a tag on a key",
	"yaml/another such line",
	"yaml/a second document that is none",
}

// TestSchemaRefusesBadFiles compares every bad file that is YAML or JSON at all.
func TestSchemaRefusesBadFiles(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	refused := 0
	var accepted []string
	for _, f := range badFiles(t) {
		v, ok := fromFile(t, []byte(f.text))
		if !ok {
			continue
		}
		if schema.Validate(v) == nil {
			accepted = append(accepted, f.name)
			continue
		}
		refused++
	}
	for _, name := range accepted {
		if !slices.Contains(unsayable, name) {
			t.Errorf("%q: valid in editors; should it be?", name)
		}
	}
	for _, name := range unsayable {
		if !slices.Contains(accepted, name) {
			t.Errorf("%q: an editor sees what is wrong, or the file is gone", name)
		}
	}
	t.Logf("%d bad files refused, %d not", refused, len(accepted))
	if refused < 4*len(accepted) {
		t.Errorf("%d bad files refused, %d not; want four fifths refused", refused, len(accepted))
	}
}

type badFile struct{ name, text string }

// badFiles reads blocks of "=== name", the file, "---", and the errors.
func badFiles(t *testing.T) []badFile {
	t.Helper()
	paths, err := filepath.Glob("../policy/testdata/bad/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	var files []badFile
	for _, path := range paths {
		topic := strings.TrimSuffix(filepath.Base(path), ".txt")
		for part := range strings.SplitSeq(strings.TrimPrefix(string(read(t, path)), "=== "), "\n=== ") {
			name, rest, _ := strings.Cut(part, "\n")
			text, _, ok := strings.Cut("\n"+rest, "\n---\n")
			if !ok {
				t.Fatalf("%s: %s: no line ---", path, name)
			}
			files = append(files, badFile{topic + "/" + name, strings.TrimPrefix(text+"\n", "\n")})
		}
	}
	return files
}
