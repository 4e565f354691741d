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

// This file answers one question: may stagger make a message for a codec? docs/hedging.md has the answers
// as a table, and TestMessage iterates over it.
//
//   - A new message always has the type of one that the application itself has passed for the same purpose. The type never
//     comes from a descriptor, and no message is made only to be discarded.
//   - Protobuf makes its own messages. Every codec that accepts the application's message accepts these.
//   - For other types, stagger makes a zero value if the application's own message is one: a codec cannot tell them
//     apart. If the application has prepared its reply, a zero value may not be enough.
//   - Attempts of streams run in parallel only with gRPC's own codec: the type of replies is unknown until
//     the application calls RecvMsg.
//
// WithNewReply covers all other cases.

// messageType is a type of new messages. The zero value makes none.
type messageType struct {
	message  protoreflect.MessageType // of protobuf's own messages
	other    reflect.Type             // of other messages, which are pointers to it
	declared func() any               // by [WithNewReply]
}

// typeOfMessage returns the type of m if protobuf makes messages of that type. That excludes types that embed a
// message: their other fields would be lost, and a codec that checks types would refuse the embedded message.
func typeOfMessage(m any) messageType {
	if t := protobufType(m); t != nil {
		return messageType{message: t}
	}
	if t := reflect.TypeOf(m); t != nil && isLegacyMessage(m, t) {
		return messageType{other: t.Elem()}
	}
	return messageType{}
}

// typeOfReply returns the type of m, into which the application receives. It must be called before any attempt
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

// replyType is typeOfReply for calls of a method; [WithNewReply] overrides it.
func (r *Retrier) replyType(method string, m any) messageType {
	if r.newReply != nil {
		if made := r.newReply(method, m); made != nil {
			return messageType{declared: made}
		}
	}
	return typeOfReply(m)
}

// streamsInParallel reports whether attempts of a stream may run in parallel, as far as is known before the
// application receives.
func (r *Retrier) streamsInParallel(codec encoding.CodecV2) bool {
	return r.newReply != nil || isGRPCs(codec)
}

// makes reports whether a message can be made.
func (t messageType) makes() bool { return t.message != nil || t.other != nil || t.declared != nil }

// newMessage returns an empty message, or nil if none may be made.
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

// protobufType returns the type of a message of protobuf's API v2, or nil if m is not one or embeds one.
func protobufType(m any) (t protoreflect.MessageType) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	defer func() {
		if recover() != nil { // in a method promoted from a nil pointer or interface
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

// isGRPCs reports whether a codec is gRPC's own for protobuf, rather than another one registered under its name.
func isGRPCs(codec encoding.CodecV2) bool {
	t := reflect.TypeOf(codec)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "google.golang.org/grpc/encoding/proto"
}

// buffered caches whether values of a type may hold gRPC's buffers: reflect.Type → bool.
var buffered sync.Map

// mayHoldBuffers reports whether m may hold reference-counted buffers. A codec may return these when it encodes m:
// freeing the result then frees buffers that m still uses.
func mayHoldBuffers(m any) bool {
	t := reflect.TypeOf(m)
	known, ok := buffered.Load(t)
	if !ok {
		known, _ = buffered.LoadOrStore(t, t != nil && reachesInterface(t, map[reflect.Type]bool{}))
	}
	may, _ := known.(bool)
	return may
}

// reachesInterface reports whether a value of type t can contain a value of any type, such as a mem.Buffer, through
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
