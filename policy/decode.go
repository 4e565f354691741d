// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// decode reads an object into a message by the JSON names of its fields. Whatever does not fit is
// reported and left out; lists of messages keep a gap for it, so that indices mean the same. It
// returns false if there was no object.
func decode(ps *problems, path string, n *node, m protoreflect.Message) bool {
	if n.kind != object {
		misfit(ps, path, n, "must be a map of keys such as "+m.Descriptor().Fields().Get(0).JSONName())
		return false
	}
	for _, e := range n.entries {
		fd := m.Descriptor().Fields().ByJSONName(e.key)
		if fd == nil {
			unknownKey(ps, path, n, e, m.Descriptor())
			continue
		}
		field := under(path, e.key)
		switch {
		case e.value.kind == null && mayBeNull(fd):
		case other(m, fd) != nil:
			rival(ps, field, e, m, fd)
		case fd.IsList():
			decodeList(ps, field, e.value, m.Mutable(fd).List(), fd)
		default:
			if v := decodeValue(ps, field, e.value, fd, m.NewField(fd)); v.IsValid() {
				m.Set(fd, v)
			} else if fd.ContainingOneof() != nil && fd.Message() != nil {
				m.Mutable(fd) // so that a second member is seen
			}
		}
	}
	return true
}

// mayBeNull are the fields where gRPC takes null for absent (service_config.proto). Elsewhere a
// key without value is more likely a slip.
func mayBeNull(fd protoreflect.FieldDescriptor) bool {
	return fd.FullName() == "stagger.policy.v1.Name.service" || fd.FullName() == "stagger.policy.v1.Name.method"
}

// other is the member of fd's oneof that is set already, or nil.
func other(m protoreflect.Message, fd protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if fd.ContainingOneof() == nil {
		return nil
	}
	return m.WhichOneof(fd.ContainingOneof())
}

// rival reports the second member of a oneof. The one that the schema has first is kept for the
// checks; of the other only the form is checked.
func rival(ps *problems, field string, e entry, m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	first, ignored := other(m, fd), ""
	if fd.ContainingOneof().Name() == "retry_or_hedging_policy" {
		ignored = "; gRPC for Go would ignore hedgingPolicy"
	}
	ps.at(e.at, field, "stands beside %s: keep one of the two%s", first.JSONName(), ignored)
	if v := decodeValue(ps, field, e.value, fd, m.NewField(fd)); v.IsValid() && fd.Number() < first.Number() {
		m.Set(fd, v)
	}
}

func decodeList(ps *problems, path string, n *node, to protoreflect.List, fd protoreflect.FieldDescriptor) {
	if n.kind != list {
		misfit(ps, path, n, "must be a list, in brackets or one entry a line after a dash")
		return
	}
	for i, value := range n.items {
		v := decodeValue(ps, item(path, i), value, fd, to.NewElement())
		if !v.IsValid() && fd.Message() != nil {
			v = to.NewElement()
		}
		if v.IsValid() {
			to.Append(v)
		}
	}
}

// decodeValue returns an invalid value, and has reported why, if n is none of fd's kind. blank is
// an empty value of the kind.
func decodeValue(ps *problems, path string, n *node, fd protoreflect.FieldDescriptor, blank protoreflect.Value) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return decodeMessage(ps, path, n, blank.Message())
	case protoreflect.EnumKind:
		return decodeEnum(ps, path, n, fd.Enum())
	default:
		return decodeScalar(ps, path, n, fd)
	}
}

func decodeMessage(ps *problems, path string, n *node, m protoreflect.Message) protoreflect.Value {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Duration":
		if d, ok := decodeDuration(ps, path, n); ok {
			return protoreflect.ValueOfMessage(durationpb.New(d).ProtoReflect())
		}
	case "google.protobuf.Struct":
		if n.kind != object {
			misfit(ps, path, n, "must be a map")
			break
		}
		return protoreflect.ValueOfMessage(anyValue(ps, path, n).GetStructValue().ProtoReflect())
	case "google.protobuf.ListValue":
		if n.kind != list {
			misfit(ps, path, n, "must be a list")
			break
		}
		return protoreflect.ValueOfMessage(anyValue(ps, path, n).GetListValue().ProtoReflect())
	default:
		if decode(ps, path, n, m) {
			return protoreflect.ValueOfMessage(m)
		}
	}
	return protoreflect.Value{}
}
