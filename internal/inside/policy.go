// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"context"

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
	// Watch calls changed after each change of a policy file, with the new set, or with what is wrong with it or
	// in reading it; what the file said before then still holds. loaded is what policy.Load made of the file: a change
	// since then is a change, too. With a nil *policy.Set, the file as it is now counts as the first change. A file that says
	// the same as before is no change, unless an error was reported since. Watch returns at once. changed is called, one at
	// a time, until ctx ends.
	Watch func(ctx context.Context, path string, loaded any, changed func(set any, err error))
	// LoadDescriptors reads a binary google.protobuf.FileDescriptorSet, as buf build and protoc write it, with all that
	// its files import. If the file cannot be read the error wraps that of package os, which errors.Is compares with
	// fs.ErrNotExist; else it is a *policy.Error that says what is wrong. A set has at most 64 MiB.
	//
	// Descriptors are kept for as long as the set of policies that policy.Set.WithDescriptors makes of them; they
	// take several times the size of the file.
	LoadDescriptors func(path string) (*protoregistry.Files, error)
	// ParseServiceConfig reads a service config in JSON that a resolver has delivered to a connection. It differs
	// from policy.Parse in what gRPC does with such a config: methods count as safe to repeat unless an entry says
	// otherwise, since gRPC itself would repeat them; and what gRPC carries out by itself (the
	// limits of messages, load balancing) is left to it, without warning. Keys in another case, keys with null, and durations
	// such as ".5s" are read as gRPC for Go reads them. The error is a *policy.Error; gRPC may accept what is refused here,
	// such as unknown keys.
	ParseServiceConfig func(data []byte) (set any, err error)
	// DeclaredIdempotent reports whether the descriptor of "/service/method" declares it safe to repeat, by its
	// idempotency_level. Descriptors come from where policy.Set.WithDescriptors takes them.
	DeclaredIdempotent func(set any, method string) bool
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
