// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// copyReply overwrites dst with src, of the same type.
func copyReply(dst, src any) {
	if to, ok := dst.(proto.Message); ok && protobufType(dst) != nil {
		from, _ := src.(proto.Message) // of the same type
		proto.Reset(to)
		proto.Merge(to, from)
		return
	}
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src).Elem())
}

// keptReply is a message of the caller's, into which several attempts may receive, with what the caller has put into it: a
// codec may need that, and a failed attempt may overwrite it, since gRPC decodes a message before it reads the status.
type keptReply struct {
	reply    any // nil if each decoding empties it first, so that there is nothing to keep
	original any // a copy, shallow for types other than protobuf's messages; nil if the reply was empty
}

// keep must be called before the first attempt. codec says that the caller chose a codec.
func (k *keptReply) keep(reply any, codec bool) {
	m, v2 := reply.(proto.Message)
	if !codec && grpcsCodec() {
		if v2 {
			return
		}
		if _, v1 := reply.(protoadapt.MessageV1); v1 {
			return
		}
	}
	k.reply = reply
	switch v := reflect.ValueOf(reply); {
	case v2:
		if protobufType(m) != nil && proto.Size(m) > 0 {
			k.original = proto.Clone(m)
		}
	case v.Kind() == reflect.Pointer && !v.IsNil() && !v.Elem().IsZero():
		original := reflect.New(v.Type().Elem())
		original.Elem().Set(v.Elem())
		k.original = original.Interface()
	}
}

// grpcsCodec reports whether calls without an option for it have gRPC's own codec, which empties messages. Programs register
// codecs only while they start.
var grpcsCodec = sync.OnceValue(func() bool { return usesGRPCsCodec(nil) })

// restore undoes what a failed attempt may have decoded.
func (k *keptReply) restore() {
	if k.reply == nil {
		return
	}
	switch m, message := k.reply.(proto.Message); {
	case k.original != nil:
		copyReply(k.reply, k.original)
	case message:
		resetMessage(m)
	default:
		if v := reflect.ValueOf(k.reply); v.Kind() == reflect.Pointer && !v.IsNil() {
			v.Elem().SetZero()
		}
	}
}

// resetMessage resets a message. Reset panics if the message is nil, or a type that embeds a nil one; then there is nothing to
// reset.
func resetMessage(m proto.Message) {
	defer func() { _ = recover() }()
	proto.Reset(m)
}
