// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// What this module asks of package policy, and users need not. Package policy sets these functions, since this package
// cannot import it: a set is a *policy.Set, at is a policy.Diagnostic, and diagnostics are a []policy.Diagnostic.
var (
	// Lint is policy.Lint with options.
	Lint func(file string, data []byte, o LintOptions) (diagnostics any)
	// Method is the descriptor of "/service/method"; nil if none is known.
	Method func(set any, method string) protoreflect.MethodDescriptor
	// LoadBalancing is the loadBalancingConfig of the file as JSON, if it names the policy of package balancer at any depth,
	// and where it stands. Else config is "", and the key is for gRPC alone.
	LoadBalancing func(set any) (config string, at any)
)

// LintOptions are what a lint knows beside the file.
type LintOptions struct {
	// Descriptors of APIs, as policy.Set.WithDescriptors takes them.
	Descriptors []*protoregistry.Files
	// OnlyDescriptors leaves out services whose generated code is linked into this program: they are not those that
	// the readers of the file call.
	OnlyDescriptors bool
	// OtherClients adds advice about gRPC clients without stagger that are given the same file.
	OtherClients bool
}
