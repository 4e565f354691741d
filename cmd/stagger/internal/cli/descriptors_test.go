// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/testkit"
)

func TestParseDescriptorsRefuses(t *testing.T) {
	t.Parallel()
	const how = "make one with buf build -o api.binpb, or protoc --include_imports --descriptor_set_out=api.binpb"
	api := func(input string, imports ...string) []byte {
		return testkit.Must(proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
			Name: new("acme/v1/orders.proto"), Package: new("acme.v1"), Syntax: new("proto3"), Dependency: imports,
			MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
			Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Orders"), Method: []*descriptorpb.MethodDescriptorProto{
				{Name: new("Get"), InputType: &input, OutputType: new(".acme.v1.Any")},
			}}},
		}}}))(t)
	}
	for _, row := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "holds no .proto files; must be a binary google.protobuf.FileDescriptorSet: " + how},
		{"text", []byte(`syntax = "proto3";`), "is not a binary google.protobuf.FileDescriptorSet; " + how},
		{"compressed", []byte{0x1f, 0x8b, 8, 0}, "is not a binary google.protobuf.FileDescriptorSet; " + how},
		{"imports left out", api(".acme.v1.Any", "acme/v1/any.proto"), `"acme/v1/orders.proto" imports "acme/v1/any.proto", which is not in the set; ` +
			"give protoc --include_imports too, as buf build does unasked"},
		{"a type left out", api(".acme.v1.None"), "holds .proto files that do not fit together: *\"acme.v1.None\"*; " + how},
		{"too large", make([]byte, 64<<20+1), "is larger than 67108864 bytes (64 MiB); leave out what the program does not call, with buf build --path"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "api.binpb")
			if err := os.WriteFile(path, row.data, 0o600); err != nil {
				t.Fatal(err)
			}
			files, err := cli.LoadDescriptors(path)
			if err == nil || files != nil || !like(err.Error(), path+": "+row.want) {
				t.Errorf("LoadDescriptors = %v, %v\nwant %s: %s", files, err, path, row.want)
			}
		})
	}
	_, err := cli.LoadDescriptors(filepath.Join(t.TempDir(), "none.binpb"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), "; "+how) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// like compares a text with a pattern, where * stands for protobuf's part of the text.
func like(text, pattern string) bool {
	for i, part := range strings.Split(pattern, "*") {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return text == ""
}
