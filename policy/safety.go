// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Safe reports whether the policy declares a method ("/service/method") safe to repeat, or leaves
// it to the method's descriptor and that declares it. Descriptors come from the registry of the
// generated code that is linked into the program.
func (p *Policy) Safe(method string) bool {
	switch p.spec.Idempotency {
	case Assume:
		return true
	case Never:
		return false
	default:
		return declaredSafe(method)
	}
}

// declaredSafe reads the idempotency_level of a method's descriptor.
func declaredSafe(method string) bool {
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok {
		return false
	}
	d := findService(service)
	if d == nil {
		return false
	}
	m := d.Methods().ByName(protoreflect.Name(name))
	return m != nil && safeLevel(m)
}

func safeLevel(m protoreflect.MethodDescriptor) bool {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

func findService(name string) protoreflect.ServiceDescriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	service, _ := d.(protoreflect.ServiceDescriptor)
	return service
}

// warnUnsafe warns of each entry that wants retries for methods which nobody declares safe.
func warnUnsafe(ps *problems, c Config, s *Set) {
	for i, m := range c.Methods {
		for j, name := range m.Names {
			if m.Retry == nil && m.Hedge == nil || name.Method != "" || resolve(m.Idempotency, c.Idempotency, name) != Declared {
				continue
			}
			unsafe, known := unsafeMethods(name, s)
			if known && len(unsafe) == 0 {
				continue
			}
			ps.add(fmt.Sprintf("methodConfig[%d].name[%d]", i, j), name.String(), "%s", unsafeAdvice(unsafe))
		}
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
	for service := range servicesOf(name) {
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
func servicesOf(name Name) func(yield func(protoreflect.ServiceDescriptor) bool) {
	return func(yield func(protoreflect.ServiceDescriptor) bool) {
		if name.Service != "" {
			if d := findService(name.Service); d != nil {
				yield(d)
			}
			return
		}
		protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				if !yield(f.Services().Get(i)) {
					return false
				}
			}
			return true
		})
	}
}

// warnUnusedBudgets warns of budgets that only code could use.
func warnUnusedBudgets(ps *problems, c Config) {
	for i, b := range c.Budgets {
		used := slices.ContainsFunc(c.Methods, func(m MethodConfig) bool {
			return m.Retry != nil && m.Retry.Budget == b.Name || m.Hedge != nil && m.Hedge.Budget == b.Name
		})
		if !used {
			ps.add(fmt.Sprintf("budgets[%d].name", i), b.Name, "no policy names this budget")
		}
	}
}
