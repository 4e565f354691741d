// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/decision"
)

// WithDescriptors gives the Retrier the descriptors of APIs whose generated code is not in the program: for proxies, and for clients
// with dynamic messages. They supply the methods' idempotency_level and whether clients send streams. For services in both, they
// override generated code. The option may be given more than once; the first that has a service wins. Package protodesc makes
// files of a google.protobuf.FileDescriptorSet, as written by "buf build -o api.binpb" or protoc --include_imports.
func WithDescriptors(files *protoregistry.Files) Option {
	return func(r *Retrier) error {
		if files == nil {
			return errors.New("interceptor: WithDescriptors(nil): must be the files of a descriptor set")
		}
		r.descriptors = append(r.descriptors, files)
		return nil
	}
}

// described reports whether generated code or a descriptor set has a service.
func (r *Retrier) described(service string) bool {
	return decision.Descriptors{Files: r.descriptors}.Service(service) != nil
}
