// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Decoder reads objects into protobuf messages by the JSON names of their fields. It is stricter than protojson: quoted
// numbers, other spellings of names, and null are errors. Enum values are written without their enum's prefix, in any case.
type Decoder struct {
	Report *Report
	// Custom reads the values that a format writes in forms of its own, and returns false for all others. It returns an
	// invalid value if it has reported the value, or if the value counts as absent.
	Custom func(field string, n *Node, fd protoreflect.FieldDescriptor) (v protoreflect.Value, ok bool)
	// Rivals holds a hint for each oneof, by its name. It ends the message about two members given together.
	Rivals map[protoreflect.Name]string
}

// Decode reads an object into a message. It reports and leaves out values that do not fit. In a list of messages an empty
// one replaces such a value, so that indices stay the same. It returns false if n is not an object.
func (d Decoder) Decode(path string, n *Node, m protoreflect.Message) bool {
	if n.Kind != Object {
		d.Report.Misfit(path, n, "must be "+objectForm(m.Descriptor()))
		return false
	}
	for _, e := range n.Entries {
		fd := m.Descriptor().Fields().ByJSONName(e.Key)
		if fd == nil {
			d.unknownKey(path, n, e, m.Descriptor())
			continue
		}
		field := Under(path, e.Key)
		switch {
		case other(m, fd) != nil:
			d.rival(field, e, m, fd)
		case fd.IsList():
			d.list(field, e.Value, m.Mutable(fd).List(), fd)
		default:
			if v := d.decodeValue(field, e.Value, fd, m.NewField(fd)); v.IsValid() {
				m.Set(fd, v)
			} else if fd.ContainingOneof() != nil && fd.Message() != nil {
				m.Mutable(fd) // so that a second member is noticed
			}
		}
	}
	return true
}

func objectForm(md protoreflect.MessageDescriptor) string {
	if md.Fields().Len() == 0 {
		return "{}"
	}
	return "a map of keys such as " + md.Fields().Get(0).JSONName()
}

// unknownKey reports a key that n's message does not have. If it resembles a known key, that key is not reported as missing
// as well.
func (d Decoder) unknownKey(path string, n *Node, e Entry, md protoreflect.MessageDescriptor) {
	keys := make([]string, md.Fields().Len())
	for i := range keys {
		keys[i] = md.Fields().Get(i).JSONName()
	}
	merge, near := e.Key == "<<", Nearest(e.Key, keys)
	d.Report.ErrorAt(e.At, Under(path, e.Key), "unknown key; %s", Lazy(func() string {
		if merge {
			return merging
		}
		return Suggest(e.Key, keys)
	}))
	d.Report.Skip(Under(path, e.Key))
	for i, key := range keys {
		// A oneof's unknown member does not make the oneof missing.
		meant := merge || key == near || near == "" && md.Fields().Get(i).ContainingOneof() != nil
		if meant && n.Get(key) == nil {
			d.Report.Skip(Under(path, key))
		}
	}
}

// other returns the member of fd's oneof that is already set, or nil.
func other(m protoreflect.Message, fd protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if fd.ContainingOneof() == nil {
		return nil
	}
	return m.WhichOneof(fd.ContainingOneof())
}

// rival reports the second member of a oneof. The one that comes first in the schema is kept for later checks; for the other
// only the form is checked.
func (d Decoder) rival(field string, e Entry, m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	first := other(m, fd)
	d.Report.ErrorAt(e.At, field, "is given together with %s: keep one of the two%s", first.JSONName(), d.Rivals[fd.ContainingOneof().Name()])
	if v := d.decodeValue(field, e.Value, fd, m.NewField(fd)); v.IsValid() && fd.Number() < first.Number() {
		m.Set(fd, v)
	}
}

func (d Decoder) list(path string, n *Node, to protoreflect.List, fd protoreflect.FieldDescriptor) {
	if n.Kind != List {
		d.Report.Misfit(path, n, "must be a list, in brackets or one entry a line after a dash")
		return
	}
	for i, value := range n.Items {
		v := d.decodeValue(Item(path, i), value, fd, to.NewElement())
		if !v.IsValid() && fd.Message() != nil {
			v = to.NewElement()
		}
		if v.IsValid() {
			to.Append(v)
		}
	}
}

// decodeValue returns n as a value of fd's kind. If n is of another kind, it reports that and returns an invalid value.
// blank is an empty value of the kind.
func (d Decoder) decodeValue(field string, n *Node, fd protoreflect.FieldDescriptor, blank protoreflect.Value) protoreflect.Value {
	if d.Custom != nil {
		if v, ok := d.Custom(field, n, fd); ok {
			return v
		}
	}
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return d.message(field, n, blank.Message())
	case protoreflect.EnumKind:
		return d.enum(field, n, fd.Enum())
	default:
		return d.scalar(field, n, fd)
	}
}

func (d Decoder) message(field string, n *Node, m protoreflect.Message) protoreflect.Value {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Duration":
		if t, ok := d.Report.duration(field, n); ok {
			return protoreflect.ValueOfMessage(durationpb.New(t).ProtoReflect())
		}
	case "google.protobuf.Struct":
		if n.Kind != Object {
			d.Report.Misfit(field, n, "must be a map")
			break
		}
		return protoreflect.ValueOfMessage(d.Any(field, n).GetStructValue().ProtoReflect())
	case "google.protobuf.ListValue":
		if n.Kind != List {
			d.Report.Misfit(field, n, "must be a list")
			break
		}
		return protoreflect.ValueOfMessage(d.Any(field, n).GetListValue().ProtoReflect())
	case "google.protobuf.Value":
		return protoreflect.ValueOfMessage(d.Any(field, n).ProtoReflect())
	default:
		if d.Decode(field, n, m) {
			return protoreflect.ValueOfMessage(m)
		}
	}
	return protoreflect.Value{}
}

// Any reads a value whose meaning the schema does not define. It reports what JSON cannot represent.
func (d Decoder) Any(path string, n *Node) *structpb.Value {
	switch n.Kind {
	case Object:
		fields := make(map[string]*structpb.Value, len(n.Entries))
		for _, e := range n.Entries {
			if e.merge {
				d.Report.ErrorAt(e.At, Under(path, e.Key), merging)
				continue
			}
			fields[e.Key] = d.Any(Under(path, e.Key), e.Value)
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	case List:
		values := make([]*structpb.Value, len(n.Items))
		for i, value := range n.Items {
			values[i] = d.Any(Item(path, i), value)
		}
		return structpb.NewListValue(&structpb.ListValue{Values: values})
	case Number:
		f, _ := d.Report.number(path, n)
		return structpb.NewNumberValue(f)
	case Bool:
		return structpb.NewBoolValue(n.IsTrue())
	case Text:
		return structpb.NewStringValue(n.Text)
	default:
		return structpb.NewNullValue()
	}
}
