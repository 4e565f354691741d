// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package methods joins a policy set with the descriptors of methods: which are streams, which are declared idempotent, and which names of
// the set match no method.
package methods

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// Set is a [policy.Set], together with descriptors of the methods. It never changes, and is safe for concurrent use.
type Set struct {
	*policy.Set
	Descriptors

	lacking    func() []policy.Diagnostic
	undeclared func() []policy.Diagnostic // at most one note
}

// Describe returns a set with descriptors: those of the files, then those of generated code in the program.
func Describe(s *policy.Set, files ...*protoregistry.Files) *Set {
	return DescribeBy(s, Descriptors{Files: files})
}

// DescribeBy returns a set with these descriptors.
func DescribeBy(s *policy.Set, d Descriptors) *Set {
	described := &Set{Set: s, Descriptors: d}
	described.lacking = sync.OnceValue(described.warnLacking)
	described.undeclared = sync.OnceValue(described.noteUndeclared)
	return described
}

// Compiled returns the compiled settings of the set.
func (s *Set) Compiled() *spec.CompiledSet { return compiled.OfSet(s.Set) }

// ClientStreams reports whether descriptors show that the client of "/service/method" sends a stream. The attempts of such a
// call never run in parallel: a hedgingPolicy sends the next attempt after a failure, and perAttemptTimeout replaces the slow
// one.
func (s *Set) ClientStreams(method string) bool {
	m := s.Method(method)
	return m != nil && m.IsStreamingClient()
}

// Streams reports whether descriptors show that "/service/method" is a stream of any kind.
func (s *Set) Streams(method string) bool {
	m := s.Method(method)
	return m != nil && (m.IsStreamingClient() || m.IsStreamingServer())
}

// Safe reports whether a policy, of this set or not, declares a method ("/service/method") idempotent, or leaves that to the
// method's descriptor, which declares it.
func (s *Set) Safe(p *policy.Policy, method string) bool {
	switch p.Idempotency() {
	case "ASSUME":
		return true
	case "NONE":
		return false
	default:
		return declaresSafe(s.Method(method))
	}
}
