// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

const (
	maxSetBytes = 64 << 20

	howToMakeSet = "make one with buf build -o api.binpb, or protoc --include_imports --descriptor_set_out=api.binpb"
)

// LoadDescriptors reads a binary google.protobuf.FileDescriptorSet, as written by buf build and protoc, with all imports of
// its files, of at most 64 MiB. If the file can't be read, the error wraps that of package os; other errors are a *policy.Error.
func LoadDescriptors(path string) (*protoregistry.Files, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, howToMakeSet)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSetBytes+1))
	if err := cmp.Or(err, f.Close()); err != nil {
		return nil, err
	}
	return parseDescriptors(path, data)
}

// parseDescriptors reads a descriptor set. file is the name that diagnostics show.
func parseDescriptors(file string, data []byte) (*protoregistry.Files, error) {
	refuse := func(format string, args ...any) (*protoregistry.Files, error) {
		return nil, &policy.Error{Diagnostics: []policy.Diagnostic{{Severity: document.SeverityError, File: file, Message: fmt.Sprintf(format, args...)}}}
	}
	if len(data) > maxSetBytes {
		return refuse("is larger than %d bytes (64 MiB); leave out what the program does not call, with buf build --path", maxSetBytes)
	}
	var set descriptorpb.FileDescriptorSet
	// Options stay bytes: other modules' options are not checked, and ours are read later.
	err := proto.UnmarshalOptions{AllowPartial: true, Resolver: new(protoregistry.Types)}.Unmarshal(data, &set)
	switch {
	case err != nil:
		return refuse("is not a binary google.protobuf.FileDescriptorSet; %s", howToMakeSet)
	case len(set.GetFile()) == 0:
		return refuse("holds no .proto files; must be a binary google.protobuf.FileDescriptorSet: %s", howToMakeSet)
	}
	if importer, missing := missingImport(&set); missing != "" {
		return refuse("%s imports %s, which is not in the set; give protoc --include_imports too, as buf build does unasked", importer, missing)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return refuse("holds .proto files that do not fit together: %s; %s", detail(err), howToMakeSet)
	}
	return files, nil
}

// missingImport returns the first file with an import that the set lacks.
func missingImport(set *descriptorpb.FileDescriptorSet) (importer, missing string) {
	has := map[string]bool{}
	for _, f := range set.GetFile() {
		has[f.GetName()] = true
	}
	for _, f := range set.GetFile() {
		for _, name := range f.GetDependency() {
			if !has[name] {
				return strconv.Quote(f.GetName()), strconv.Quote(name)
			}
		}
	}
	return "", ""
}

// detail returns protobuf's text of an error, without the mark that keeps programs from comparing it.
func detail(err error) string {
	return strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
}
