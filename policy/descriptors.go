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

// WithDescriptors returns a set that also holds the policies which the owners of APIs ship with them, as
// options of their methods and services (proto/stagger/policy/v1/options.proto), and that reads the
// methods' idempotency_level from the same descriptors. They come from the files that s was given before, then
// from these, then from the registry of the generated code that is linked into the program; of these, the
// first that knows a service wins.
//
// Only where [Set.Lookup] finds nothing in the config of s, the option of the method holds, else that of its
// service. They are not merged. The first counts like an entry that names service and method, the second
// like one that names a service ([Idempotency]); but if the .proto sets idempotency_level to IDEMPOTENCY_UNKNOWN
// in so many words, the method is not safe to repeat.
//
// The error is an [*Error] with what is wrong with the options that would hold. To do without one of them,
// name its method or service in the policy file.
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

// descriptors is where services are looked up: in files, then in the registry of generated code, unless only the files
// count.
type descriptors struct {
	files []*protoregistry.Files
	only  bool
}

// service finds a service by its full name; nil if no descriptor is known.
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

// services yields every service once, with the files that it comes from. It touches only names: what else
// a file of generated code holds is unpacked when somebody asks for it.
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

// servicesIn collects first: RangeFiles holds a lock, and to read a service takes the same one.
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

// own knows the options of this module. Those of others stay bytes: they are not ours to judge.
var own = typesOf(policyv1.E_Retry, policyv1.E_ServiceRetry)

func typesOf(extensions ...protoreflect.ExtensionType) *protoregistry.Types {
	types := new(protoregistry.Types)
	for _, e := range extensions {
		_ = types.RegisterExtension(e) // refuses only what is there already
	}
	return types
}

// reread turns the options of a descriptor into the generated type with the extensions of this module: a
// registry that was made from a file has them as bytes, one that was made by hand as it likes.
func reread[O proto.Message](d protoreflect.Descriptor, options O) (O, error) {
	data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(d.Options())
	if err == nil {
		err = proto.UnmarshalOptions{AllowPartial: true, Resolver: own}.Unmarshal(data, options)
	}
	return options, err
}

// knowsOptions reports whether options in these files can be this module's. Others may use the same field
// numbers, but a file that uses ours imports options.proto.
func knowsOptions(files *protoregistry.Files) bool {
	_, err := files.FindDescriptorByName(policyv1.E_Retry.TypeDescriptor().FullName())
	return err == nil
}

// level is the idempotency_level of a method; nil if its .proto does not say.
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
