// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/policy"
)

// The services that this program knows, registered like generated code.
var _ = registerShop()

func registerShop() protoreflect.FileDescriptor {
	level := func(l descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodOptions {
		return &descriptorpb.MethodOptions{IdempotencyLevel: l.Enum()}
	}
	method := func(name string, o *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".shop.Any"), OutputType: new(".shop.Any"), Options: o,
		}
	}
	get := method("Get", level(descriptorpb.MethodOptions_NO_SIDE_EFFECTS))
	put := method("Put", level(descriptorpb.MethodOptions_IDEMPOTENT))
	mall := &descriptorpb.ServiceDescriptorProto{Name: new("Mall")}
	for i := range 25 {
		mall.Method = append(mall.Method, method(fmt.Sprintf("Pay%02d", i), nil))
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("shop.proto"), Package: new("shop"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service: []*descriptorpb.ServiceDescriptorProto{
			{Name: new("Safe"), Method: []*descriptorpb.MethodDescriptorProto{get, put}},
			{Name: new("Mixed"), Method: []*descriptorpb.MethodDescriptorProto{
				get, method("Pay", nil), method("Add", level(descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN)),
			}},
			mall,
		},
	}, nil)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
	return file
}

// TestIdempotencyOrder is the order of the design's section 5.
func TestIdempotencyOrder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		file, entry string
		method      policy.Idempotency // of a name with method
		service     policy.Idempotency // of a name without
	}{
		{"", "", policy.IdempotencyAssume, policy.IdempotencyDeclared},
		{"ASSUME", "", policy.IdempotencyAssume, policy.IdempotencyAssume},
		{"DECLARED", "", policy.IdempotencyDeclared, policy.IdempotencyDeclared},
		{"NONE", "", policy.IdempotencyNone, policy.IdempotencyNone},
		{"", "ASSUME", policy.IdempotencyAssume, policy.IdempotencyAssume},
		{"NONE", "ASSUME", policy.IdempotencyAssume, policy.IdempotencyAssume},
		{"ASSUME", "declared", policy.IdempotencyDeclared, policy.IdempotencyDeclared},
		{"ASSUME", "NONE", policy.IdempotencyNone, policy.IdempotencyNone},
	} {
		text := "methodConfig:\n- name: [{}, {service: a.B}, {service: a.B, method: C}]\n"
		if row.entry != "" {
			text += "  idempotency: " + row.entry + "\n"
		}
		if row.file != "" {
			text += "idempotency: " + row.file + "\n"
		}
		set := mustParse(t, "f", text)
		for method, want := range map[string]policy.Idempotency{
			"/a.B/C": row.method, "/a.B/D": row.service, "/a.C/D": row.service,
		} {
			if got := set.Lookup(method).Spec().Idempotency; got != want {
				t.Errorf("file %q, entry %q: %s is %v; want %v", row.file, row.entry, method, got, want)
			}
		}
	}
}
