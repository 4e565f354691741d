// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Level is the idempotency_level of "/service/method", such as IDEMPOTENT, as the first of the descriptor sets that
// knows the service has it; "" if none knows the method.
func Level(method string, sets ...*protoregistry.Files) string {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	for _, files := range sets {
		d, err := files.FindDescriptorByName(protoreflect.FullName(service))
		s, ok := d.(protoreflect.ServiceDescriptor)
		if err != nil || !ok {
			continue
		}
		m := s.Methods().ByName(protoreflect.Name(name))
		if m == nil {
			return ""
		}
		options, _ := m.Options().(*descriptorpb.MethodOptions)
		return options.GetIdempotencyLevel().String()
	}
	return ""
}
