// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// apiSet is a descriptor set with one API: a service acme.v1.Orders with the given options, and those of its
// methods by name. Options may be nil.
func apiSet(service *descriptorpb.ServiceOptions, methods map[string]*descriptorpb.MethodOptions) *descriptorpb.FileDescriptorSet {
	orders := &descriptorpb.ServiceDescriptorProto{Name: new("Orders"), Options: service}
	for _, name := range []string{"Create", "Get", "List"} {
		if options, ok := methods[name]; ok {
			orders.Method = append(orders.Method, &descriptorpb.MethodDescriptorProto{
				Name: &name, InputType: new(".acme.v1.Any"), OutputType: new(".acme.v1.Any"), Options: options,
			})
		}
	}
	api := &descriptorpb.FileDescriptorProto{
		Name: new("acme/v1/orders.proto"), Package: new("acme.v1"), Syntax: new("proto3"),
		Dependency:  []string{"stagger/policy/v1/options.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service:     []*descriptorpb.ServiceDescriptorProto{orders},
	}
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var include func(f protoreflect.FileDescriptor)
	include = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			include(f.Imports().Get(i))
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	include(policyv1.File_stagger_policy_v1_options_proto)
	set.File = append(set.File, api)
	return set
}

// apiOf is the file with the API in such a set.
func apiOf(set *descriptorpb.FileDescriptorSet) *descriptorpb.FileDescriptorProto {
	files := set.GetFile()
	return files[len(files)-1]
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// goodRetry is a policy without mistakes, changed by edit.
func goodRetry(edit func(*policyv1.RetryPolicy)) *policyv1.RetryPolicy {
	r := &policyv1.RetryPolicy{
		MaxAttempts: 3, InitialBackoff: &durationpb.Duration{Nanos: 5e7}, MaxBackoff: &durationpb.Duration{Seconds: 1},
		BackoffMultiplier: 2, RetryableStatusCodes: []policyv1.StatusCode{policyv1.StatusCode_STATUS_CODE_UNAVAILABLE},
	}
	if edit != nil {
		edit(r)
	}
	return r
}

// with has a policy as the option of a method.
func with(r *policyv1.RetryPolicy) *descriptorpb.MethodOptions {
	o := new(descriptorpb.MethodOptions)
	proto.SetExtension(o, policyv1.E_Retry, r)
	return o
}

// describe parses a set and adds it to the policies of a file.
func describe(t *testing.T, file string, set *descriptorpb.FileDescriptorSet) (*policy.Set, error) {
	t.Helper()
	files, err := policy.ParseDescriptors("api.binpb", marshal(t, set))
	if err != nil {
		t.Fatal(err)
	}
	return mustParse(t, "f", file).WithDescriptors(files)
}
