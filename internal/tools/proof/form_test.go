// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
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
	{
		name: "messages made by a factory", option: grpc.ForceCodec(factories{}),
		make: func(text string) any { return &made{factory: true, data: encoded(text)} }, empty: func() any { return &made{factory: true} },
		text: func(m any) string { return decoded(m.(*made).data) },
	},
	{
		name: "buffers given away", option: grpc.ForceCodecV2(givers{}),
		make:  func(text string) any { return &gift{mem.BufferSlice{pooled(encoded(text))}} },
		empty: func() any { return new(gift) },
		text:  func(m any) string { return decoded(m.(*gift).data.Materialize()) },
	},
	{
		name: "embedded messages", option: grpc.ForceCodec(embedders{}),
		make: func(text string) any { return &embedding{StringValue: wrapperspb.String(text), set: true} }, empty: func() any { return new(embedding) },
		text: func(m any) string { return m.(*embedding).GetValue() },
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

// made is a message that is only usable if its factory has created it, like jhump's dynamic messages.
type made struct {
	factory bool
	data    []byte
}

func (m *made) Reset() { m.data = nil }

type factories struct{}

func (factories) Name() string { return "proto" }

func (factories) Marshal(m any) ([]byte, error) { return m.(*made).checked().data, nil }

func (factories) Unmarshal(data []byte, m any) error {
	m.(*made).checked().data = append([]byte(nil), data...)
	return nil
}

func (m *made) checked() *made {
	if !m.factory {
		panic("a message that its factory has not made")
	}
	return m
}

// gift is a message whose codec passes on ownership of its buffers.
type gift struct{ data mem.BufferSlice }

type givers struct{}

func (givers) Name() string { return "proto" }

func (givers) Marshal(m any) (mem.BufferSlice, error) {
	g, ok := m.(*gift)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errNotOurs, m)
	}
	return g.data, nil // its only reference
}

func (givers) Unmarshal(data mem.BufferSlice, m any) error {
	g, ok := m.(*gift)
	if !ok {
		return fmt.Errorf("%w: %T", errNotOurs, m)
	}
	data.Ref()
	g.data = data
	return nil
}

// pooled returns a buffer that can be freed only once: gRPC does not count references to small ones.
func pooled(text []byte) mem.Buffer {
	data := append(make([]byte, 0, 4096), text...)
	return mem.NewBuffer(&data, mem.NopBufferPool{})
}

// embedding is an application's message that embeds a protobuf message, without being one.
type embedding struct {
	*wrapperspb.StringValue

	set bool
}

type embedders struct{}

func (embedders) Name() string { return "proto" }

func (embedders) Marshal(m any) ([]byte, error) {
	e, ok := m.(*embedding)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errNotOurs, m)
	}
	return proto.Marshal(e.StringValue)
}

func (embedders) Unmarshal(data []byte, m any) error {
	e, ok := m.(*embedding)
	if !ok {
		return fmt.Errorf("%w: %T", errNotOurs, m)
	}
	e.StringValue, e.set = new(wrapperspb.StringValue), true
	return proto.Unmarshal(data, e.StringValue)
}
