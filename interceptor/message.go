// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"strings"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file answers one question: may stagger make a message that a codec is to take? docs/hedging.md has the answers
// as a table, and TestMessage iterates over it.
//
//   - A message is made only of the type of one that the application itself has given for the same purpose. No
//     descriptor says of what type it is, and none is made to be thrown away.
//   - Protobuf makes its own messages, which every codec takes that takes the application's.
//   - Of other types, stagger makes a zero value if the application's own message is one: a codec cannot tell the two
//     apart. A reply that the application has prepared says that a zero value is not enough.
//   - Attempts of streams run in parallel only with gRPC's own codec: nothing says of what type the replies are before
//     the application asks for one.
//
// WithNewReply declares what these rules cannot know.

// messageType is of what type messages are made. The zero value makes none.
type messageType struct {
	message  protoreflect.MessageType // of protobuf's own messages
	other    reflect.Type             // of others; made are pointers to it
	declared func() any               // by [WithNewReply]
}

// typeOfMessage returns the type of m if protobuf makes messages of that type. It does not for a type that embeds a
// message: what that adds is lost, and a codec that looks at types does not take the embedded one.
func typeOfMessage(m any) messageType {
	if t := protobufType(m); t != nil {
		return messageType{message: t}
	}
	if t := reflect.TypeOf(m); t != nil && isLegacyMessage(m, t) {
		return messageType{other: t.Elem()}
	}
	return messageType{}
}

// typeOfReply returns the type of m, which an application waits to receive into. It must be called before any attempt
// receives into m.
func typeOfReply(m any) messageType {
	t := typeOfMessage(m)
	if _, embeds := m.(proto.Message); t.makes() || embeds {
		return t
	}
	if v := reflect.ValueOf(m); v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().IsZero() {
		return messageType{other: v.Type().Elem()}
	}
	return messageType{}
}

// replyType is typeOfReply for a call of a method, as [WithNewReply] declares it, if it is given.
func (r *Retrier) replyType(method string, m any) messageType {
	if r.newReply != nil {
		if made := r.newReply(method, m); made != nil {
			return messageType{declared: made}
		}
	}
	return typeOfReply(m)
}

// streamsInParallel reports whether attempts of a stream may run in parallel, as far as that can be known before the
// application receives.
func (r *Retrier) streamsInParallel(codec encoding.CodecV2) bool {
	return r.newReply != nil || isGRPCs(codec)
}

// makes reports whether a message can be made.
func (t messageType) makes() bool { return t.message != nil || t.other != nil || t.declared != nil }

// newMessage makes an empty message; nil if that is not allowed.
func (t messageType) newMessage() any {
	switch {
	case t.declared != nil:
		return t.declared()
	case t.message != nil:
		return t.message.New().Interface()
	case t.other != nil:
		return reflect.New(t.other).Interface()
	default:
		return nil
	}
}

// protobufType returns the type of a message of protobuf's API v2; nil if m is none, or embeds one.
func protobufType(m any) (t protoreflect.MessageType) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	defer func() {
		if recover() != nil { // of a method that a nil pointer or interface has promoted
			t = nil
		}
	}()
	reflected := message.ProtoReflect()
	if made := reflect.TypeOf(m); reflect.TypeOf(reflected.Interface()) != made || reflect.TypeOf(reflected.Type().Zero().Interface()) != made {
		return nil
	}
	return reflected.Type()
}

// isLegacyMessage reports whether the type of m was generated for protobuf's API v1, by gogo/protobuf too: all of its
// fields carry protobuf's tags. A type that embeds a message, or implements one by hand, has others.
func isLegacyMessage(m any, t reflect.Type) bool {
	if _, ok := m.(proto.Message); ok {
		return false
	}
	if _, ok := m.(protoadapt.MessageV1); !ok || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	for f := range t.Elem().Fields() {
		_, field := f.Tag.Lookup("protobuf")
		_, oneof := f.Tag.Lookup("protobuf_oneof")
		if !field && !oneof && !strings.HasPrefix(f.Name, "XXX_") {
			return false
		}
	}
	return true
}

// isGRPCs reports whether a codec is gRPC's own of protobuf, whatever is registered under its name.
func isGRPCs(codec encoding.CodecV2) bool {
	t := reflect.TypeOf(codec)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "google.golang.org/grpc/encoding/proto"
}

// buffered says of types whether their values may hold buffers of gRPC's: reflect.Type → bool.
var buffered sync.Map

// mayHoldBuffers reports whether m may hold reference-counted buffers. A codec may give these away when it encodes m:
// who frees what it has returned frees them under m.
func mayHoldBuffers(m any) bool {
	t := reflect.TypeOf(m)
	known, ok := buffered.Load(t)
	if !ok {
		known, _ = buffered.LoadOrStore(t, t != nil && reachesInterface(t, map[reflect.Type]bool{}))
	}
	may, _ := known.(bool)
	return may
}

// reachesInterface reports whether a value of type t can lead to a value of any type, such as a mem.Buffer, by way of
// types that are not in seen.
func reachesInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	reaches := func(next reflect.Type) bool { return reachesInterface(next, seen) }
	switch t.Kind() {
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	case reflect.Map:
		return reaches(t.Key()) || reaches(t.Elem())
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return reaches(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if reaches(f.Type) {
				return true
			}
		}
		return false
	default:
		return false
	}
}
