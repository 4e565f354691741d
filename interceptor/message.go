// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file answers one question: may stagger make a message for a codec? docs/hedging.md has the answers
// as a table, and TestMessage iterates over it.
//
//   - A new message always has the type of one that the application itself has passed for the same purpose. The type never
//     comes from a descriptor, and no message is made only to be discarded.
//   - Protobuf makes its messages. Every codec that accepts the application's message accepts these.
//   - No message of any other type is made, those of protobuf's API v1 included.
//   - Attempts of streams run in parallel only with gRPC's own codec: the type of replies is unknown until
//     the application calls RecvMsg.
//
// WithNewReply covers all other cases.

// messageType is a type of new messages. The zero value makes none.
type messageType struct {
	message  protoreflect.MessageType // of protobuf's messages
	declared func() any               // by [WithNewReply]
}

// replyType returns the type of m, into which the application receives in a call of a method, if [WithNewReply] declares one, or
// protobuf makes messages of that type. That excludes types that embed a message: their other fields would be lost, and a codec
// that checks types would refuse the embedded message.
func (r *Retrier) replyType(method string, m any) messageType {
	if r.newReply != nil {
		if made := r.newReply(method, m); made != nil {
			return messageType{declared: made}
		}
	}
	return messageType{message: protobufType(m)}
}

// streamsInParallel reports whether attempts of a stream may run in parallel, as far as is known before the
// application receives.
func (r *Retrier) streamsInParallel(o *callOptions) bool {
	return r.newReply != nil || !o.codec && grpcsCodec() || o.codec && usesGRPCsCodec(o.caller)
}

// makes reports whether a message can be made.
func (t messageType) makes() bool { return t.message != nil || t.declared != nil }

// newMessage returns an empty message, or nil if none may be made.
func (t messageType) newMessage() any {
	switch {
	case t.declared != nil:
		return t.declared()
	case t.message != nil:
		return t.message.New().Interface()
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

// isGRPCs reports whether a codec is gRPC's for protobuf, rather than another one registered under its name.
func isGRPCs(codec encoding.CodecV2) bool {
	t := reflect.TypeOf(codec)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "google.golang.org/grpc/encoding/proto"
}

// usesGRPCsCodec reports whether a call's codec is gRPC's for protobuf, by the rules of gRPC's options.
func usesGRPCsCodec(opts []grpc.CallOption) bool {
	forced, own, subtype := false, false, ""
	for _, o := range opts {
		switch o := promoted(o).(type) {
		case grpc.ForceCodecV2CallOption:
			forced, own = true, isGRPCs(o.CodecV2)
		case grpc.ForceCodecCallOption, grpc.CustomCodecCallOption:
			forced, own = true, false
		case grpc.ContentSubtypeCallOption:
			subtype = o.ContentSubtype
		}
	}
	if forced {
		return own
	}
	name := cmp.Or(subtype, encodingproto.Name)
	return encoding.GetCodec(name) == nil && isGRPCs(encoding.GetCodecV2(name))
}
