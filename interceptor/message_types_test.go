// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// older is strict as a codec of gRPC's older kind.
type older struct{ strict }

func (o older) Marshal(v any) ([]byte, error) {
	data, err := o.strict.Marshal(v)
	return data.Materialize(), err
}

func (o older) Unmarshal(data []byte, v any) error {
	return o.strict.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, v)
}

// generatedOnly is a codec that takes one generated type, by a method of its own, as vtprotobuf's does.
type generatedOnly struct{ strict }

func (generatedOnly) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*wrapperspb.StringValue)
	if !ok {
		return nil, fmt.Errorf("%T is not of this codec", v)
	}
	data, err := proto.Marshal(m)
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

func (generatedOnly) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*wrapperspb.StringValue)
	if !ok {
		return fmt.Errorf("%T is not of this codec", v)
	}
	return proto.Unmarshal(data.Materialize(), m)
}

func dynamicValue(text string) any {
	m := dynamicpb.NewMessage(wrapperspb.String("").ProtoReflect().Descriptor())
	m.Set(m.Descriptor().Fields().ByName("value"), protoreflect.ValueOfString(text))
	return m
}

func dynamicText(reply any) string {
	m := reply.(*dynamicpb.Message)
	return m.Get(m.Descriptor().Fields().ByName("value")).String()
}

func jsonBytes(text string) []byte {
	data, _ := protojson.Marshal(wrapperspb.String(text))
	return data
}

// legacyValue is a message as gogo/protobuf and older generators make them.
type legacyValue struct {
	Value string `protobuf:"bytes,1,opt,name=value,proto3"`
}

func (m *legacyValue) Reset()         { *m = legacyValue{} }
func (m *legacyValue) String() string { return m.Value }
func (*legacyValue) ProtoMessage()    {}

// preparedValue is a dynamic message as those of jhump/protoreflect: its zero value knows no type, and panics.
type preparedValue struct {
	md     protoreflect.MessageDescriptor
	values map[int]string
}

func newPrepared(text string) *preparedValue {
	return &preparedValue{wrapperspb.String("").ProtoReflect().Descriptor(), map[int]string{0: text}}
}

func (m *preparedValue) Reset()         { clear(m.values) }
func (m *preparedValue) String() string { return m.values[0] }
func (*preparedValue) ProtoMessage()    {}

func (m *preparedValue) Marshal() ([]byte, error) {
	_ = m.md.FullName() // panics without one
	return proto.Marshal(wrapperspb.String(m.values[0]))
}

func (m *preparedValue) Unmarshal(data []byte) error {
	_ = m.md.FullName()
	m.values[0] = valueOf(data)
	return nil
}

// byteFrames is a codec of a proxy that does not look into messages.
type byteFrames struct{ strict }

func (byteFrames) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (byteFrames) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// jsonCodec speaks protobuf's JSON.
type jsonCodec struct{}

func (jsonCodec) Name() string                  { return "json" }
func (jsonCodec) Marshal(v any) ([]byte, error) { return protojson.Marshal(v.(proto.Message)) }
func (jsonCodec) Unmarshal(data []byte, v any) error {
	return protojson.Unmarshal(data, v.(proto.Message))
}

// frame is a message of a proxy that does not decode messages.
type frame struct{ payload mem.BufferSlice }

type frames struct{}

func (frames) Name() string { return "proto" }

func (frames) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("%T is no frame", v)
	}
	f.payload.Ref()
	return f.payload, nil
}

func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	data.Ref()
	v.(*frame).payload = data
	return nil
}

// note is a message of a codec without protobuf that merges into existing contents.
type note struct{ text string }

type notes struct{ name string }

func (notes) Marshal(v any) ([]byte, error) {
	n, ok := v.(*note)
	if !ok {
		return nil, fmt.Errorf("%T is no note", v)
	}
	return []byte(n.text), nil
}

func (notes) Unmarshal(data []byte, v any) error {
	v.(*note).text += string(data)
	return nil
}

func (c notes) Name() string { return c.name }

func (c notes) String() string { return c.name }

type notes2 struct{ notes }

func (c notes2) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.notes.Marshal(v)
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

func (c notes2) Unmarshal(data mem.BufferSlice, v any) error {
	return c.notes.Unmarshal(data.Materialize(), v)
}
