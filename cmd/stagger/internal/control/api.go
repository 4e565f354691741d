// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// API knows the messages and methods of the services that a fault server stands for: those of its
// descriptor sets, the first first, and those that are linked into the program.
type API struct {
	files []*protoregistry.Files
	types []*dynamicpb.Types
}

// NewAPI makes an API of descriptor sets, of which there may be none.
func NewAPI(files ...*protoregistry.Files) *API {
	a := &API{files: append(slices.Clip(files), protoregistry.GlobalFiles)}
	for _, f := range files {
		a.types = append(a.types, dynamicpb.NewTypes(f))
	}
	return a
}

// first returns what the first source has that has it.
func first[S, T any](sources []S, find func(S) (T, error)) (T, error) {
	for _, s := range sources {
		if found, err := find(s); err == nil {
			return found, nil
		}
	}
	var none T
	return none, protoregistry.NotFound
}

// FindDescriptorByName implements protodesc.Resolver.
func (a *API) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return first(a.files, func(f *protoregistry.Files) (protoreflect.Descriptor, error) { return f.FindDescriptorByName(name) })
}

// FindFileByPath implements protodesc.Resolver.
func (a *API) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	return first(a.files, func(f *protoregistry.Files) (protoreflect.FileDescriptor, error) { return f.FindFileByPath(path) })
}

// FindMessageByName implements protoregistry.MessageTypeResolver.
func (a *API) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if m, err := protoregistry.GlobalTypes.FindMessageByName(name); err == nil {
		return m, nil
	}
	return first(a.types, func(t *dynamicpb.Types) (protoreflect.MessageType, error) { return t.FindMessageByName(name) })
}

// FindMessageByURL implements protoregistry.MessageTypeResolver.
func (a *API) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return a.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
}

// FindExtensionByName implements protoregistry.ExtensionTypeResolver.
func (a *API) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	if x, err := protoregistry.GlobalTypes.FindExtensionByName(name); err == nil {
		return x, nil
	}
	return first(a.types, func(t *dynamicpb.Types) (protoreflect.ExtensionType, error) { return t.FindExtensionByName(name) })
}

// FindExtensionByNumber implements protoregistry.ExtensionTypeResolver.
func (a *API) FindExtensionByNumber(message protoreflect.FullName, number protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	if x, err := protoregistry.GlobalTypes.FindExtensionByNumber(message, number); err == nil {
		return x, nil
	}
	return first(a.types, func(t *dynamicpb.Types) (protoreflect.ExtensionType, error) {
		return t.FindExtensionByNumber(message, number)
	})
}

// reply is the message that "/package.Service/Method" answers with, or nil.
func (a *API) reply(method string) protoreflect.MessageDescriptor {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	d, err := a.FindDescriptorByName(protoreflect.FullName(service))
	s, ok := d.(protoreflect.ServiceDescriptor)
	if err != nil || !ok {
		return nil
	}
	if m := s.Methods().ByName(protoreflect.Name(name)); m != nil {
		return m.Output()
	}
	return nil
}

// services are the names of all services of the descriptor sets.
func (a *API) services() []string {
	var names []string
	for _, files := range a.files[:len(a.files)-1] {
		files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				names = append(names, string(f.Services().Get(i).FullName()))
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}
