// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// WithDescriptors returns a set that also holds the policies which the owners of APIs ship with them, as
// options of their methods and services (proto/stagger/policy/v1/options.proto), and that reads the
// methods' idempotency_level from the same descriptors. They come from the files that s was given before, then
// from these, then from the registry of the generated code that is linked into the program; the first that
// knows a service is believed.
//
// Only where [Set.Lookup] finds nothing in the config of s, the option of the method holds, else that of its
// service. They are not merged. The first counts like an entry that names service and method, the second
// like one that names a service ([IdempotencyByName]); but if the .proto sets idempotency_level to IDEMPOTENCY_UNKNOWN
// in so many words, the method is not safe to repeat.
//
// The error is an [*Error] with what is wrong with the options that would hold. To do without one of them,
// name its method or service in the policy file.
func (s *Set) WithDescriptors(files ...*protoregistry.Files) (*Set, error) {
	next := *s
	next.policies = slices.Clone(s.configured())
	next.descriptors = slices.Concat(s.descriptors, files)
	shipped, err := ship(&next)
	if err != nil {
		return nil, err
	}
	next.byPath = maps.Clone(s.byEntry)
	for _, p := range shipped.policies {
		p.index = len(next.policies)
		next.policies = append(next.policies, p)
		next.byPath[p.name.String()] = p
	}
	next.warnings = append(next.warn(), shipped.warnings...)
	return &next, nil
}

// Safe reports whether a policy, of this set or not, declares a method ("/service/method") safe to repeat,
// or leaves it to the method's descriptor and that declares it. Descriptors come from where
// [Set.WithDescriptors] takes them.
func (s *Set) Safe(p *Policy, method string) bool { return p.safe(method, s.descriptors) }

// configured are the policies of the config alone.
func (s *Set) configured() []*Policy {
	n := len(s.byEntry)
	if s.fallback != nil {
		n++
	}
	return s.policies[:n]
}

// descriptors is where services are looked up; the registry of generated code follows unsaid.
type descriptors []*protoregistry.Files

// service finds a service by its full name; nil if nobody knows it.
func (d descriptors) service(name string) protoreflect.ServiceDescriptor {
	for _, files := range d {
		if found := serviceIn(files, name); found != nil {
			return found
		}
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
		for _, files := range append(slices.Clip(d), protoregistry.GlobalFiles) {
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

// servicesIn collects before anyone looks into them: RangeFiles holds a lock that looking takes too.
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
