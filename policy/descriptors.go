// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// WithDescriptors returns a set that also has the policies that API owners ship as options of their methods and services
// (proto/stagger/policy/v1/options.proto), and that reads the methods' idempotency_level from the same descriptors. Descriptors
// come from the files of earlier calls, then from these files, then from the registry of generated code in the program. The
// first of these that has a service wins.
//
// An option applies only if [Set.Lookup] finds nothing in the config of s: the option of the method, else that of its service.
// They are not merged. A method's option counts like an entry that names service and method, a service's option like one that
// names a service ([Idempotency]). But if the .proto explicitly sets idempotency_level to IDEMPOTENCY_UNKNOWN, the method isn't
// idempotent.
//
// The error is an [*Error] with all errors in the options that apply. To override one of them, name its method or service in
// the policy file.
func (s *Set) WithDescriptors(files ...*protoregistry.Files) (*Set, error) {
	next := *s
	next.policies = slices.Clone(s.configured())
	next.descriptors.files = slices.Concat(s.descriptors.files, files)
	fromAPIs, err := readAPIPolicies(&next)
	if err != nil {
		return nil, err
	}
	next.byPath = s.byEntry.Clone()
	for _, p := range fromAPIs.policies {
		next.policies = append(next.policies, p)
		next.byPath.Put(p.name, p)
	}
	next.warnings, next.undeclared = append(next.currentWarnings(), fromAPIs.warnings...), next.noteUndeclared()
	return &next, nil
}

// descriptors looks up services: in files, then in the registry of generated code, unless only the files count.
type descriptors struct {
	files []*protoregistry.Files
	only  bool
}

// service returns a service by its full name, or nil if it is unknown.
func (d descriptors) service(name string) protoreflect.ServiceDescriptor {
	for _, files := range d.files {
		if found := serviceIn(files, name); found != nil {
			return found
		}
	}
	if d.only {
		return nil
	}
	return serviceIn(protoregistry.GlobalFiles, name)
}

func serviceIn(files *protoregistry.Files, name string) protoreflect.ServiceDescriptor {
	d, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	service, _ := d.(protoreflect.ServiceDescriptor)
	return service
}

// services yields every service once, with its files. It reads only names: other parts of generated files are unpacked when
// they are read.
func (d descriptors) services() iter.Seq2[protoreflect.ServiceDescriptor, *protoregistry.Files] {
	return func(yield func(protoreflect.ServiceDescriptor, *protoregistry.Files) bool) {
		seen := map[protoreflect.FullName]bool{}
		all := slices.Clip(d.files)
		if !d.only {
			all = append(all, protoregistry.GlobalFiles)
		}
		for _, files := range all {
			for _, service := range servicesIn(files) {
				if seen[service.FullName()] {
					continue
				}
				seen[service.FullName()] = true
				if !yield(service, files) {
					return
				}
			}
		}
	}
}

// servicesIn collects first: RangeFiles holds a lock that reading a service also takes.
func servicesIn(files *protoregistry.Files) []protoreflect.ServiceDescriptor {
	var list []protoreflect.ServiceDescriptor
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			list = append(list, f.Services().Get(i))
		}
		return true
	})
	slices.SortFunc(list, func(a, b protoreflect.ServiceDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return list
}

// own has the options of this module. Other modules' options stay bytes.
var own = typesOf(policyv1.E_Retry, policyv1.E_ServiceRetry)

func typesOf(extensions ...protoreflect.ExtensionType) *protoregistry.Types {
	types := new(protoregistry.Types)
	for _, e := range extensions {
		_ = types.RegisterExtension(e) // fails only if it is already there
	}
	return types
}

// reread converts the options of a descriptor to the generated type with this module's extensions: in a registry from a file
// they are bytes, in one built by hand they can have any type.
func reread[O proto.Message](d protoreflect.Descriptor, options O) (O, error) {
	data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(d.Options())
	if err == nil {
		err = proto.UnmarshalOptions{AllowPartial: true, Resolver: own}.Unmarshal(data, options)
	}
	return options, err
}

// knowsOptions reports whether options in these files can be this module's. Others may use the same field numbers, but only
// files that import options.proto use ours.
func knowsOptions(files *protoregistry.Files) bool {
	_, err := files.FindDescriptorByName(policyv1.E_Retry.TypeDescriptor().FullName())
	return err == nil
}

// level returns the idempotency_level of a method, or nil if its .proto doesn't set it.
func level(m protoreflect.MethodDescriptor) *descriptorpb.MethodOptions_IdempotencyLevel {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	if !ok {
		var err error
		if options, err = reread(m, new(descriptorpb.MethodOptions)); err != nil {
			return nil
		}
	}
	if options == nil {
		return nil
	}
	return options.IdempotencyLevel
}
