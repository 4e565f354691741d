// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "google.golang.org/protobuf/types/known/structpb"

// anyValue reads what gRPC, not this schema, gives a meaning.
func anyValue(ps *problems, path string, n *node) *structpb.Value {
	switch n.kind {
	case object:
		fields := make(map[string]*structpb.Value, len(n.entries))
		for _, e := range n.entries {
			fields[e.key] = anyValue(ps, under(path, e.key), e.value)
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	case list:
		values := make([]*structpb.Value, len(n.items))
		for i, value := range n.items {
			values[i] = anyValue(ps, item(path, i), value)
		}
		return structpb.NewListValue(&structpb.ListValue{Values: values})
	case number:
		f, _ := parseNumber(ps, path, n)
		return structpb.NewNumberValue(f)
	case boolean:
		return structpb.NewBoolValue(isTrue(n))
	case text:
		return structpb.NewStringValue(n.text)
	default:
		return structpb.NewNullValue()
	}
}
