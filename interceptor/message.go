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

// This file answers one question: may stagger make a message for a codec? NOT-HANDLED.md has the rules, and
// TestMessage the cases.
//
//   - A new message always has the type of one that the application itself has passed for the same purpose. The type never
//     comes from a descriptor, and no message is made only to be discarded.
//   - Protobuf makes its messages. Every codec that accepts the application's message accepts these.
//   - No message of any other type is made, those of protobuf's API v1 included.

// replyType returns the type of the replies of parallel attempts: that of m, the application's. It returns nil if attempts must run in
// sequence, because protobuf doesn't make m's type, or because a codec other than gRPC's may add to what m holds. Protobuf doesn't make types
// that embed a message: their other fields would be lost, and a codec that checks types would refuse the embedded message.
func (c *call) replyType(m any) protoreflect.MessageType {
	t := protobufType(m)
	filled, _ := m.(proto.Message)
	if t == nil || c.codec() != codecOfGRPC && proto.Size(filled) > 0 {
		return nil
	}
	return t
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

// codecKind is what matters of a call's codec for its messages.
type codecKind uint8

const (
	codecOfGRPC  codecKind = iota // gRPC's for protobuf: it empties a message before it decodes into it
	codecOfOther                  // its bytes are its own: a request can be encoded any number of times
	codecGiving                   // an encoding.CodecV2, which may give a message's buffers away: then it can be sent once
)

// codec returns the kind of the call's codec.
func (c *call) codec() codecKind {
	if c.options.codec {
		return codecOf(c.options.caller)
	}
	return c.entry.codec
}

// codecOf returns the kind of the codec that options choose, by the rules of gRPC's options.
func codecOf(opts []grpc.CallOption) codecKind {
	var forced encoding.CodecV2
	older, subtype := false, ""
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.ForceCodecV2CallOption:
			forced, older = o.CodecV2, false
		case grpc.ForceCodecCallOption, grpc.CustomCodecCallOption:
			forced, older = nil, true
		case grpc.ContentSubtypeCallOption:
			subtype = o.ContentSubtype
		}
	}
	if forced == nil {
		name := cmp.Or(subtype, encodingproto.Name)
		older = older || encoding.GetCodec(name) != nil
		forced = encoding.GetCodecV2(name)
	}
	switch {
	case older, forced == nil: // without a codec, gRPC ends the call
		return codecOfOther
	case isGRPCs(forced):
		return codecOfGRPC
	default:
		return codecGiving
	}
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

// keptReply is a reply of the caller's into which several attempts may receive, one after the other, and what the caller has put into
// it. A codec may need that, and a failed attempt may overwrite it: gRPC decodes a message before it reads the status.
type keptReply struct {
	reply    any
	original any // a copy: of protobuf's messages a deep one, else a shallow one; nil if there is nothing to restore
}

// keepReply keeps a reply before the first attempt. gRPC's own codec empties messages, so that there is nothing to keep.
func (c *call) keepReply(reply any) keptReply {
	_, v2 := reply.(proto.Message)
	_, v1 := reply.(protoadapt.MessageV1)
	if c.codec() == codecOfGRPC && (v2 || v1) {
		return keptReply{}
	}
	return keptReply{reply, copyOf(reply)}
}

// restore undoes what a failed attempt may have decoded.
func (k *keptReply) restore() {
	if k.original != nil {
		copyReply(k.reply, k.original)
	}
}

// copyOf returns a copy of a message, or nil if nothing can be decoded into it.
func copyOf(m any) any {
	v := reflect.ValueOf(m)
	isMap := v.Kind() == reflect.Map
	if !isMap && v.Kind() != reflect.Pointer || v.IsNil() {
		return nil
	}
	if protobufType(m) != nil {
		message, _ := m.(proto.Message)
		return proto.Clone(message)
	}
	to := reflect.New(v.Type().Elem())
	if isMap {
		to = reflect.MakeMap(v.Type())
	}
	copyReply(to.Interface(), m)
	return to.Interface()
}

// unaryMessages are the messages of a unary call, for several attempts. Each attempt sends the same request. If an attempt may still
// run when the next one is sent, those after the first have copies of the request, as it was when the call began: inner interceptors of
// two attempts would change one message at the same time. Attempt timeouts and hedges need that. Others do without: an encoding may cost
// 10 % of a call or more.
//
// Each attempt finds the reply as it was when the call began. One that runs in parallel with others has a reply of its own.
type unaryMessages struct {
	request, reply any                      // the caller's
	copied         encoded                  // request before the first attempt; empty if attempts share it
	kept           keptReply                // reply before the first attempt
	replies        protoreflect.MessageType // of attempts with replies of their own; nil: there are none
}

// copyRequest keeps a copy of the request, if it can be copied.
func (m *unaryMessages) copyRequest() {
	var e encoder
	_ = e.encode(m.request, math.MaxInt, &m.copied)
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

// takeReply copies the reply of the attempt whose response is the call's into the caller's.
func (m *unaryMessages) takeReply(a *attempt) {
	if a.ownReply {
		copyReply(m.reply, a.reply)
	}
}
