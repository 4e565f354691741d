// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// badFile is one case of testdata/bad: a file, and the complete texts of its errors.
type badFile struct {
	name, text, want string
}

// badFiles reads the cases: "=== name", the file, "---", the errors under the file name f.
func badFiles(t testing.TB) []badFile {
	t.Helper()
	paths, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in testdata/bad: %v", err)
	}
	var files []badFile
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		topic := strings.TrimSuffix(filepath.Base(path), ".txt")
		for part := range strings.SplitSeq(strings.TrimPrefix(string(data), "=== "), "\n=== ") {
			name, rest, _ := strings.Cut(part, "\n")
			text, want, ok := strings.Cut("\n"+rest, "\n---\n")
			if !ok {
				t.Fatalf("%s: %s: no line ---", path, name)
			}
			text = strings.TrimPrefix(text+"\n", "\n")
			files = append(files, badFile{topic + "/" + name, text, strings.TrimSuffix(want, "\n")})
		}
	}
	return files
}

func TestParseBadFiles(t *testing.T) {
	t.Parallel()
	for _, row := range badFiles(t) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set, err := policy.Parse("f", []byte(row.text))
			if err == nil {
				t.Fatalf("Parse(\n%s) = nil; want\n%s", row.text, row.want)
			}
			if set != nil {
				t.Errorf("Parse returns a set and the error %v", err)
			}
			if got := err.Error(); got != row.want {
				t.Errorf("Parse(\n%s) =\n%s\nwant\n%s", row.text, got, row.want)
			}
		})
	}
}

// TestBadFilesHaveEveryField ensures that each new field has a case.
func TestBadFilesHaveEveryField(t *testing.T) {
	t.Parallel()
	files := badFiles(t)
	if len(files) < 60 {
		t.Errorf("%d bad files; want 60 or more", len(files))
	}
	index := regexp.MustCompile(`\[\d+\]`)
	var inYAML, inJSON []string
	for _, f := range files {
		_, err := policy.Parse("f", []byte(f.text))
		fault, ok := errors.AsType[*policy.Error](err)
		if !ok {
			t.Fatalf("%s: %v", f.name, err)
		}
		for _, p := range fault.Diagnostics {
			field := index.ReplaceAllString(p.Field, "")
			if strings.HasPrefix(f.text, "{") {
				inJSON = append(inJSON, field)
			} else {
				inYAML = append(inYAML, field)
			}
		}
	}
	fields := fieldsOf("", (*policyv1.PolicyFile)(nil).ProtoReflect().Descriptor())
	if len(fields) < 50 {
		t.Errorf("looked for %d fields; want all of the schema", len(fields))
	}
	for _, field := range fields {
		if strings.HasPrefix(field, "policies.retryPolicy.") || strings.HasPrefix(field, "policies.hedgingPolicy.") {
			continue // the messages of methodConfig
		}
		if !slices.Contains(inYAML, field) {
			t.Errorf("no file in YAML has something wrong in %s", field)
		}
		if !slices.Contains(inJSON, field) {
			t.Errorf("no file in JSON has something wrong in %s", field)
		}
	}
}

// fieldsOf returns the fields of a message and of all messages in it, as errors name them.
func fieldsOf(path string, m protoreflect.MessageDescriptor) []string {
	var fields []string
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		fields = append(fields, path+f.JSONName())
		if f.Message() != nil && f.Message().ParentFile() == m.ParentFile() {
			fields = append(fields, fieldsOf(path+f.JSONName()+".", f.Message())...)
		}
	}
	return fields
}
