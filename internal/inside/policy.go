// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"context"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Functions of package policy for this module only. Package policy sets them, because this package can't import it: a set is a
// *policy.Set, at is a policy.Diagnostic, and diagnostics are a []policy.Diagnostic.
var (
	// Lint is policy.Lint with options.
	Lint func(file string, data []byte, o LintOptions) (diagnostics any)
	// Method returns the descriptor of "/service/method", or nil if it is unknown.
	Method func(set any, method string) protoreflect.MethodDescriptor
	// LoadBalancing returns the file's loadBalancingConfig as JSON and its position, if it names the policy of package balancer
	// at any depth. Otherwise config is "", and the key is for gRPC alone.
	LoadBalancing func(set any) (config string, at any)
	// Watch calls changed after each change of a policy file, with the new set or an error in the file or in reading it; after
	// an error, the previous set stays valid. loaded is the set that policy.Load returned: later changes of the file count.
	// With a nil *policy.Set, the current file counts as the first change. A file with unchanged content does not count, unless
	// an error was reported since. Watch returns at once. It calls changed, one call at a time, until ctx ends.
	Watch func(ctx context.Context, path string, loaded any, changed func(set any, err error))
	// LoadDescriptors reads a binary google.protobuf.FileDescriptorSet, as written by buf build and protoc, with all imports of
	// its files, of at most 64 MiB. If the file can't be read, the error wraps that of package os, for errors.Is with
	// fs.ErrNotExist; other errors are a *policy.Error.
	//
	// The set of policies that policy.Set.WithDescriptors returns keeps the descriptors. They take several times the size of
	// the file.
	LoadDescriptors func(path string) (*protoregistry.Files, error)
	// ParseServiceConfig parses a service config in JSON that a resolver has delivered to a connection. It differs from
	// policy.Parse where gRPC does: methods count as idempotent unless an entry says otherwise, because gRPC itself would retry
	// them; and gRPC's own features (message limits, load balancing) are left to gRPC, without a warning. Keys in another case,
	// null values, and durations such as ".5s" are parsed as in gRPC for Go. The error is a *policy.Error. gRPC may accept a
	// config that ParseServiceConfig refuses, for example for an unknown key.
	ParseServiceConfig func(data []byte) (set any, err error)
	// DeclaredIdempotent reports whether the descriptor of "/service/method" declares it idempotent, with its
	// idempotency_level. Descriptors have the same sources as in policy.Set.WithDescriptors.
	DeclaredIdempotent func(set any, method string) bool
)

// LintOptions configure a lint.
type LintOptions struct {
	// Descriptors of APIs, as for policy.Set.WithDescriptors.
	Descriptors []*protoregistry.Files
	// OnlyDescriptors leaves out services whose generated code is linked into this program: the file's readers don't call them.
	OnlyDescriptors bool
	// OtherClients adds advice for gRPC clients without stagger that use the same file.
	OtherClients bool
}
