// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// registry knows the messages and methods of the services that a fault server stands for: those of its
// descriptor sets, the first first, and those that are linked into the program.
type registry struct {
	*protoregistry.Files
	*dynamicpb.Types

	services []string // of the descriptor sets
}

// newRegistry makes a registry of descriptor sets, of which there may be none.
func newRegistry(sets ...*protoregistry.Files) *registry {
	a := &registry{Files: new(protoregistry.Files)}
	for _, set := range append(slices.Clip(sets), protoregistry.GlobalFiles) {
		set.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			if a.RegisterFile(f) != nil || set == protoregistry.GlobalFiles { // an error: a set before has it
				return true
			}
			for i := range f.Services().Len() {
				a.services = append(a.services, string(f.Services().Get(i).FullName()))
			}
			return true
		})
	}
	a.Types = dynamicpb.NewTypes(a.Files)
	return a
}

// reply is the message that "/package.Service/Method" answers with, or nil.
func (a *registry) reply(method string) protoreflect.MessageDescriptor {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	d, _ := a.FindDescriptorByName(protoreflect.FullName(name))
	if m, ok := d.(protoreflect.MethodDescriptor); ok {
		return m.Output()
	}
	return nil
}
