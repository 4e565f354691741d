// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Safe reports whether the policy declares a method ("/service/method") safe to repeat, or leaves
// it to the method's descriptor and that declares it. Descriptors come from the registry of the
// generated code that is linked into the program; [Set.Safe] knows others too.
func (p *Policy) Safe(method string) bool { return p.safe(method, nil) }

func (p *Policy) safe(method string, known descriptors) bool {
	switch p.spec.Idempotency {
	case IdempotencyAssume:
		return true
	case IdempotencyNone:
		return false
	default:
		return known.safe(method)
	}
}

// safe reads the idempotency_level of a method's descriptor.
func (d descriptors) safe(method string) bool {
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok {
		return false
	}
	found := d.service(service)
	if found == nil {
		return false
	}
	m := found.Methods().ByName(protoreflect.Name(name))
	return m != nil && safeLevel(m)
}

func safeLevel(m protoreflect.MethodDescriptor) bool {
	l := level(m)
	return l != nil && *l != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

// doubtful reports whether retries under an entry's name depend on what descriptors declare.
func doubtful(m MethodConfig, assumed Idempotency, name Name) bool {
	return (m.Retry != nil || m.Hedge != nil) && name.Method == "" && m.IdempotencyKey == "" && resolve(m.Idempotency, assumed, name) == IdempotencyDeclared
}

// sayUnsafe says which methods that a name leads to want retries although nobody declares them safe.
func sayUnsafe(name Name) func(*Set) string {
	return func(s *Set) string {
		unsafe, known := unsafeMethods(name, s)
		if known && len(unsafe) == 0 {
			return ""
		}
		return unsafeAdvice(unsafe)
	}
}

// maxNamed bounds a warning's length in a program with a thousand methods.
const maxNamed = 20

func unsafeAdvice(methods []string) string {
	which := "a method"
	if n := len(methods); n > 0 {
		which = strings.Join(methods[:min(n, maxNamed)], ", ")
		if n > maxNamed {
			which += fmt.Sprintf(" and %d more", n-maxNamed)
		}
	}
	return which + " will be retried only if the attempt never left the client, since nothing declares it safe to repeat; " +
		"name the method in an entry, set idempotency_level in its .proto, or add \"idempotency: ASSUME\" to this entry"
}

// unsafeMethods lists the methods that lookups lead to this name and that no descriptor declares
// safe; known is whether there was any descriptor to read.
func unsafeMethods(name Name, s *Set) (unsafe []string, known bool) {
	for service := range s.servicesOf(name) {
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			path := Name{Service: string(service.FullName()), Method: string(m.Name())}.String()
			p := s.Lookup(path)
			if p == nil || p.name != name {
				continue
			}
			known = true
			if !safeLevel(m) {
				unsafe = append(unsafe, path)
			}
		}
	}
	slices.Sort(unsafe)
	return unsafe, known
}

// servicesOf yields the services that a name without method is for, as far as they are known.
func (s *Set) servicesOf(name Name) iter.Seq2[protoreflect.ServiceDescriptor, *protoregistry.Files] {
	if name.Service == "" {
		return s.descriptors.services()
	}
	return func(yield func(protoreflect.ServiceDescriptor, *protoregistry.Files) bool) {
		if d := s.descriptors.service(name.Service); d != nil {
			yield(d, nil)
		}
	}
}
