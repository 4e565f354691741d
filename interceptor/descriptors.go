// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/inside"
)

// WithDescriptors reads a descriptor set, for programs without the generated code of the APIs that they
// call: proxies, and clients with dynamic messages. path is a binary google.protobuf.FileDescriptorSet with
// all imports, of at most 64 MiB, as written by these commands:
//
//	buf build -o api.binpb
//	protoc --include_imports --descriptor_set_out=api.binpb …
//
// The set supplies the methods' idempotency_level and the policies of APIs, as generated code does
// by itself (policy.Set.WithDescriptors). For services in both, the set overrides generated
// code. The option may be given more than once; the first set that has a service wins.
// The file is read once, by [New] or [Load].
func WithDescriptors(path string) Option {
	return func(r *Retrier) error {
		files, err := inside.LoadDescriptors(path)
		if err != nil {
			return fmt.Errorf("interceptor: WithDescriptors(%q): %w", path, err)
		}
		r.descriptors = append(r.descriptors, files)
		return nil
	}
}

// described reports whether generated code or a descriptor set has a service.
func (r *Retrier) described(service string) bool {
	return slices.ContainsFunc(append(slices.Clip(r.descriptors), protoregistry.GlobalFiles), func(files *protoregistry.Files) bool {
		found, err := files.FindDescriptorByName(protoreflect.FullName(service))
		_, ok := found.(protoreflect.ServiceDescriptor)
		return err == nil && ok
	})
}
