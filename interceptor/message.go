// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"math"
	"reflect"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
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
	v := reflect.ValueOf(m)
	assignable := (v.Kind() == reflect.Pointer || v.Kind() == reflect.Map) && !v.IsNil() // else nothing can be copied into m
	if r.newReply != nil && assignable {
		if made := r.newReply(method, m); made != nil {
			return messageType{declared: made}
		}
	}
	return messageType{message: protobufType(m)}
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
	reflected, made := message.ProtoReflect(), reflect.TypeOf(m)
	own, known := protobufs.Load(made)
	if !known {
		own = reflect.TypeOf(reflected.Interface()) == made && reflect.TypeOf(reflected.Type().Zero().Interface()) == made
		protobufs.Store(made, own)
	}
	if own == false {
		return nil
	}
	return reflected.Type()
}

// protobufs has the Go types of messages, and whether protobuf makes them: reflect.Type → bool.
var protobufs sync.Map

// isGRPCs reports whether a codec is gRPC's for protobuf, rather than another one registered under its name.
func isGRPCs(codec encoding.CodecV2) bool {
	t := reflect.TypeOf(codec)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "google.golang.org/grpc/encoding/proto"
}

// usesGRPCsCodec reports whether the call's codec is gRPC's for protobuf.
func (c *call) usesGRPCsCodec() bool {
	if c.options.codec {
		return usesGRPCsCodec(c.options.caller)
	}
	return c.entry.grpcsCodec
}

// usesGRPCsCodec reports whether options choose gRPC's codec for protobuf, by the rules of gRPC's options.
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

// copyReply overwrites dst with src, of the same type: a pointer or a map.
func copyReply(dst, src any) {
	if to, ok := dst.(proto.Message); ok && protobufType(dst) != nil {
		from, _ := src.(proto.Message) // of the same type
		proto.Reset(to)
		proto.Merge(to, from)
		return
	}
	to, from := reflect.ValueOf(dst), reflect.ValueOf(src)
	if to.Kind() == reflect.Pointer {
		to.Elem().Set(from.Elem())
		return
	}
	to.Clear()
	for entries := from.MapRange(); entries.Next(); {
		to.SetMapIndex(entries.Key(), entries.Value())
	}
}

// keptReply is a message of the caller's, into which several attempts may receive, with what the caller has put into it: a
// codec may need that, and a failed attempt may overwrite it, since gRPC decodes a message before it reads the status.
type keptReply struct {
	reply    any  // nil if each decoding empties it first, so that there is nothing to keep
	original any  // a copy, shallow for types other than protobuf's messages; nil if the reply was empty
	partly   bool // a decoding may also change the original, as with a map that the caller has put into the reply
}

// keep must be called before the first attempt. grpcsCodec says that the call's codec is gRPC's own, which empties messages.
func (k *keptReply) keep(reply any, grpcsCodec bool) {
	m, v2 := reply.(proto.Message)
	if grpcsCodec {
		if v2 {
			return
		}
		if _, v1 := reply.(protoadapt.MessageV1); v1 {
			return
		}
	}
	v := reflect.ValueOf(reply)
	switch {
	case v.Kind() == reflect.Map && !v.IsNil(), v.Kind() == reflect.Slice && v.Cap() > 0:
		k.reply, k.partly = reply, true
	case v.Kind() != reflect.Pointer, v.IsNil():
	case protobufType(reply) != nil:
		k.reply = reply
		if proto.Size(m) > 0 {
			k.original = proto.Clone(m)
		}
	default:
		k.reply = reply
		if v.Elem().IsZero() {
			return
		}
		original := reflect.New(v.Type().Elem())
		original.Elem().Set(v.Elem())
		k.original, k.partly = original.Interface(), shares(v.Elem())
	}
}

// restore undoes what a failed attempt may have decoded, but for what is kept partly.
func (k *keptReply) restore() {
	v := reflect.ValueOf(k.reply)
	m, _ := k.reply.(proto.Message)
	switch {
	case k.original != nil:
		copyReply(k.reply, k.original)
	case v.Kind() != reflect.Pointer:
	case protobufType(m) != nil:
		proto.Reset(m)
	default:
		v.Elem().SetZero()
	}
}

// unaryMessages are the messages of a unary call, for several attempts. Each attempt sends the same request:
//
//   - If an attempt may still run when the next one is sent, those after the first have copies of the request, as it was when the call
//     began: inner interceptors of two attempts would change one message at the same time. Attempt timeouts and hedges need that, and
//     calls after an inner interceptor has left an attempt running. Others do without: an encoding may cost 10 % of a call or more.
//   - A request that can't be copied is encoded once, if its codec may give its buffers away.
//
// And each attempt finds the reply as it was when the call began, or has a reply of its own.
type unaryMessages struct {
	request, reply any           // the caller's
	copied         encoded       // request before the first attempt; empty if attempts share it
	kept           keptReply     // reply before the first attempt
	codec          *messageCodec // of the attempts, if request or reply can't be copied; else nil
	replies        messageType   // of attempts with replies of their own
	ownReplies     bool          // all attempts have them
}

// copyRequest keeps a copy of the request, if it can be copied.
func (m *unaryMessages) copyRequest() {
	var e encoder
	_ = e.encode(m.request, math.MaxInt, &m.copied)
}

// useMessageCodec sets the codec, if request or reply can't be copied. It returns false if the call needs none, or if the options of its
// caller choose none: gRPC reports that.
func (m *unaryMessages) useMessageCodec(caller []grpc.CallOption) bool {
	consumed := protobufType(m.request) == nil
	if !consumed && !m.kept.partly {
		return false
	}
	m.codec = newMessageCodec(caller)
	if m.codec == nil {
		return false
	}
	if consumed {
		m.codec.encodeOnce(m.request)
	}
	if m.kept.partly {
		m.codec.watch(m.reply)
	}
	return true
}

// requestOf returns the request of attempt a.
func (m *unaryMessages) requestOf(a *attempt) any {
	if a.number == 1 || m.copied.of == nil {
		return m.request
	}
	made, err := m.copied.decode()
	if err != nil {
		return m.request // its messages are nested too deeply
	}
	return made
}

// spoiled reports whether an attempt has received something into the caller's reply that can't be undone.
func (m *unaryMessages) spoiled() bool {
	return m.kept.partly && m.codec != nil && m.codec.received.Load()
}

// needsOwnReply reports whether the next attempt, which runs alone, can't receive into the caller's reply, but into one of its own.
func (m *unaryMessages) needsOwnReply() bool {
	return m.ownReplies || m.spoiled() && m.replies.makes()
}

// takeReply copies the reply of the attempt whose response is the call's into the caller's.
func (m *unaryMessages) takeReply(a *attempt) {
	if a.ownReply {
		copyReply(m.reply, a.reply)
	}
}
