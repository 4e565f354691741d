// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb" // linked in, as badAPI and register want it

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// levels writes a descriptor set of the service of the other tests, where CreateOrder is IDEMPOTENT.
func levels(t *testing.T) string {
	t.Helper()
	method := func(name string, options *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".acme.orders.v1.Order"), OutputType: new(".acme.orders.v1.Order"), Options: options,
		}
	}
	return writeSet(t, &descriptorpb.FileDescriptorProto{
		Name: new("orders.proto"), Package: new("acme.orders.v1"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Order")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("OrderService"), Method: []*descriptorpb.MethodDescriptorProto{
			method("CreateOrder", &descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_IDEMPOTENT.Enum()}),
			method("DeleteOrder", nil),
		}}},
	})
}

func writeSet(t *testing.T, files ...*descriptorpb.FileDescriptorProto) string {
	t.Helper()
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "api.binpb")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shipped is the file of an API whose only method has a policy of so many attempts.
func shipped(service string, attempts uint32) *descriptorpb.FileDescriptorProto {
	options := new(descriptorpb.MethodOptions)
	proto.SetExtension(options, policyv1.E_Retry, &policyv1.RetryPolicy{
		MaxAttempts: attempts, InitialBackoff: durationpb.New(time.Second), MaxBackoff: durationpb.New(time.Second), BackoffMultiplier: 1,
		RetryableStatusCodes: []policyv1.StatusCode{policyv1.StatusCode_STATUS_CODE_UNAVAILABLE}, Jitter: policyv1.Jitter_JITTER_NONE,
	})
	low := strings.ToLower(service)
	return &descriptorpb.FileDescriptorProto{
		Name: new(low + ".proto"), Package: new("acme." + low + ".v1"), Syntax: new("proto3"),
		Dependency: []string{"stagger/policy/v1/options.proto", "google/protobuf/empty.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: &service, Method: []*descriptorpb.MethodDescriptorProto{{
			Name: new("Get"), InputType: new(".google.protobuf.Empty"), OutputType: new(".google.protobuf.Empty"), Options: options,
		}}}},
	}
}

// badAPI is a set with a policy that is wrong.
func badAPI() []*descriptorpb.FileDescriptorProto {
	var files []*descriptorpb.FileDescriptorProto
	for _, path := range []string{
		"google/protobuf/descriptor.proto", "google/protobuf/duration.proto", "google/protobuf/struct.proto",
		"google/protobuf/empty.proto", "stagger/policy/v1/policy.proto", "stagger/policy/v1/options.proto",
	} {
		f, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			panic(err)
		}
		files = append(files, protodesc.ToFileDescriptorProto(f))
	}
	return append(files, shipped("Bad", 1))
}

// The API that this program is linked with, registered as generated code does it.
var _ = register(shipped("Linked", 4))

func register(f *descriptorpb.FileDescriptorProto) error {
	file, err := protodesc.NewFile(f, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
	return err
}
