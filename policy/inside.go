// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/inside"
)

func init() {
	inside.Lint = func(file string, data []byte, o inside.LintOptions) any { return lint(file, data, o) }
	inside.Method = func(set any, method string) protoreflect.MethodDescriptor {
		s, _ := set.(*Set)
		return s.descriptors.method(method)
	}
	inside.LoadBalancing = func(set any) (string, any) {
		s, _ := set.(*Set)
		return s.balancing, s.balancingAt
	}
	inside.Watch = func(ctx context.Context, path string, loaded any, changed func(any, error)) {
		s, _ := loaded.(*Set)
		watch(ctx, path, s, func(s *Set, err error) { changed(s, err) })
	}
	inside.LoadDescriptors = loadDescriptors
	inside.ParseServiceConfig = func(data []byte) (any, error) { return parseServiceConfig(data) }
	inside.DeclaredIdempotent = func(set any, method string) bool {
		s, _ := set.(*Set)
		return s.descriptors.safe(method)
	}
}

// method returns the descriptor of a method ("/service/method"), or nil if it is unknown.
func (d descriptors) method(path string) protoreflect.MethodDescriptor {
	service, name, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok {
		return nil
	}
	found := d.service(service)
	if found == nil {
		return nil
	}
	return found.Methods().ByName(protoreflect.Name(name))
}
