// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods_test

import (
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// policyOf is a checked spec, compiled.
func policyOf(t testing.TB, s spec.Policy) *policy.Policy {
	t.Helper()
	p, err := compiled.NewPolicy(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mustParse reads a policy file, and knows the services of the shop.
func mustParse(t testing.TB, text string) *methods.Set {
	t.Helper()
	set, err := policy.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return methods.Describe(set, shop)
}

var shop = func() *protoregistry.Files {
	method := func(name string, level *descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".shop.Any"), OutputType: new(".shop.Any"), Options: &descriptorpb.MethodOptions{IdempotencyLevel: level},
		}
	}
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: new("shop.proto"), Package: new("shop"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Mixed"), Method: []*descriptorpb.MethodDescriptorProto{
			method("Get", descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Enum()), method("Pay", nil), method("Add", nil),
		}}},
	}}})
	if err != nil {
		panic(err)
	}
	return files
}()
