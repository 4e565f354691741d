// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/lookup"
	"github.com/stagger-go/stagger/policy"
)

// Set is a [policy.Set], compiled. It never changes, and is safe for concurrent use.
type Set struct {
	*policy.Set
	Descriptors

	config   policy.Config
	policies []*Policy
	byPath   lookup.Table[Policy]
	mode     policy.Mode // of all calls

	lacking    func() []policy.Diagnostic
	undeclared func() []policy.Diagnostic // at most one note
}

// Compile compiles the policies of a set. Descriptors are those of the files, then those of generated code in the program.
func Compile(s *policy.Set, files ...*protoregistry.Files) *Set {
	return CompileFor(s, Descriptors{Files: files})
}

// CompileFor compiles the policies of a set for APIs with these descriptors.
func CompileFor(s *policy.Set, d Descriptors) *Set {
	c := s.Config()
	compiled := &Set{Set: s, Descriptors: d, config: c, byPath: lookup.Table[Policy]{}, mode: max(c.Mode, policy.ModeEnforce)}
	for _, m := range c.Methods {
		for _, name := range m.Names {
			p := New(s.Lookup(name).Spec())
			p.mode = max(compiled.mode, p.mode)
			p.name, p.index = name, len(compiled.policies)
			compiled.policies = append(compiled.policies, p)
			compiled.byPath[name] = p
		}
	}
	compiled.lacking = sync.OnceValue(compiled.warnLacking)
	compiled.undeclared = sync.OnceValue(compiled.noteUndeclared)
	return compiled
}

// Config returns the set's config, as [policy.Set.Config] does. The caller must not change it, nor what it points to.
func (s *Set) Config() *policy.Config { return &s.config }

// Lookup returns the policy for a full method name, as [policy.Set.Lookup] does. It does not allocate.
func (s *Set) Lookup(method string) *Policy { return s.byPath.Find(method) }

// Channel returns the keys of the file that gRPC itself implements, as [inside.Channel] does.
func (s *Set) Channel() (config string, at policy.Diagnostic) { return inside.Channel(s.Set) }

// Place returns where the config has a name, as [inside.Place] does.
func (s *Set) Place(name string) policy.Diagnostic { return inside.Place(s.Set, name) }

// Policies returns the policies in the order of the config, one for each name. The caller must not change the list.
func (s *Set) Policies() []*Policy { return s.policies }

// Mode returns the mode of all calls, whatever their policy. Policies may be stricter.
func (s *Set) Mode() policy.Mode { return s.mode }

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
func (s *Set) Safe(p *Policy, method string) bool {
	switch p.spec.Idempotency {
	case "ASSUME":
		return true
	case "NONE":
		return false
	default:
		return declaresSafe(s.Method(method))
	}
}
