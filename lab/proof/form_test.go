// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The service is linked into the program, like generated code: a proxy whose messages are frames finds its types.
var _ = func() protoreflect.FileDescriptor {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("proof.proto"), Package: new("proof"), Syntax: new("proto3"),
		Dependency: []string{"google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Service"), Method: []*descriptorpb.MethodDescriptorProto{{
			Name: new("Call"), InputType: new(".google.protobuf.StringValue"), OutputType: new(".google.protobuf.StringValue"),
		}}}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	if err := protoregistry.GlobalFiles.RegisterFile(file); err != nil {
		panic(err)
	}
	return file
}()

// form is a type of messages, with its codec. Codecs accept only their own type, which exposes messages of others.
type form struct {
	name   string
	option grpc.CallOption // nil: gRPC's own codec
	make   func(text string) any
	empty  func() any
	text   func(m any) string
}

// encoded returns a text as encoded in every form.
func encoded(text string) []byte {
	data, err := proto.Marshal(wrapperspb.String(text))
	if err != nil {
		panic(err)
	}
	return data
}

func decoded(data []byte) string {
	m := new(wrapperspb.StringValue)
	if err := proto.Unmarshal(data, m); err != nil {
		return "garbled: " + err.Error()
	}
	return m.GetValue()
}

var forms = []form{
	{
		name: "generated code",
		make: func(text string) any { return wrapperspb.String(text) }, empty: func() any { return new(wrapperspb.StringValue) },
		text: func(m any) string { return m.(*wrapperspb.StringValue).GetValue() },
	},
	{
		name: "dynamicpb",
		make: func(text string) any {
			m := dynamicpb.NewMessage(new(wrapperspb.StringValue).ProtoReflect().Descriptor())
			if err := proto.Unmarshal(encoded(text), m); err != nil {
				panic(err)
			}
			return m
		},
		empty: func() any { return dynamicpb.NewMessage(new(wrapperspb.StringValue).ProtoReflect().Descriptor()) },
		text: func(m any) string {
			data, _ := proto.Marshal(m.(proto.Message))
			return decoded(data)
		},
	},
	{
		name: "frames", option: grpc.ForceCodec(frames{}),
		make: func(text string) any { return &frame{encoded(text)} }, empty: func() any { return new(frame) },
		text: func(m any) string { return decoded(m.(*frame).data) },
	},
}

// frame is a proxy's message.
type frame struct{ data []byte }

type frames struct{}

var errNotOurs = errors.New("a message that is not of this codec's type")

func (frames) Name() string { return "proto" }

func (frames) Marshal(m any) ([]byte, error) {
	f, ok := m.(*frame)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errNotOurs, m)
	}
	return f.data, nil
}

func (frames) Unmarshal(data []byte, m any) error {
	f, ok := m.(*frame)
	if !ok {
		return fmt.Errorf("%w: %T", errNotOurs, m)
	}
	f.data = append([]byte(nil), data...)
	return nil
}
