// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// Set has the policies of a program, and the budgets that they name. It never changes, and is safe for concurrent use.
type Set struct {
	compiled spec.CompiledSet
	byPath   lookup.Table[Policy]
	list     []*Policy // in the order of the file
	mode     Mode      // of all calls
	warnings []Diagnostic
	source   string            // the name of the text that it was parsed from, or ""
	text     string            // that text
	digest   [sha256.Size]byte // of that text, or zero
}

// init gives the packages of this module what programs can't use, since the types are internal: see package compiled.
func init() {
	spec.NewSet = func(c spec.Config) (any, error) { return compile(c, &document.Report{}) }
	spec.NewPolicy = func(p spec.Policy) (any, error) { return compileOne(p) }
	spec.OfSet = func(set any) *spec.CompiledSet {
		s, _ := set.(*Set)
		return &s.compiled
	}
	spec.OfPolicy = func(policy any) *spec.Compiled {
		p, _ := policy.(*Policy)
		return &p.compiled
	}
}

// compile checks a config and returns its set. It adds to the errors that reading a file has reported.
func compile(c spec.Config, report *document.Report) (*Set, error) {
	spec.Check(report, c)
	if err := report.Err(); err != nil {
		return nil, err
	}
	s := &Set{compiled: spec.CompileSet(c, report), byPath: lookup.Table[Policy]{}, mode: StrictestMode(Mode(c.Mode))}
	for _, m := range c.Methods {
		for _, name := range m.Names {
			of := m.Policy
			of.Idempotency = spec.IdempotencyOf(m.Idempotency, c.Idempotency, name)
			p := newPolicy(of)
			p.set, p.name, p.mode = s, name, StrictestMode(s.mode, p.mode)
			s.byPath[name] = p
			s.list = append(s.list, p)
		}
	}
	s.warnings = spec.Warnings(report, c)
	return s, nil
}

// Lookup returns the policy for a full method name ("/service/method"): of the entry that names the method, else its service,
// else everything, else nil. Entries are not merged. Lookup does not allocate.
func (s *Set) Lookup(method string) *Policy { return s.byPath.Find(method) }

// Policies returns the policies in the order of the file, one for each name.
func (s *Set) Policies() []*Policy { return slices.Clone(s.list) }

// Mode returns the mode of all calls, whatever their policy. Policies may be stricter.
func (s *Set) Mode() Mode { return s.mode }

// Source returns the name of the file that the set was parsed from, as given, or "" if there was none.
func (s *Set) Source() string { return s.source }

// Hash identifies the text of a policy file: the first 12 digits that sha256sum prints for the file. It is "" if there was
// none.
func (s *Set) Hash() string {
	if s.digest == [sha256.Size]byte{} {
		return ""
	}
	return hex.EncodeToString(s.digest[:6])
}

// String returns the text of the policy file: as it was parsed, or as [New] wrote it. Parsed again, it is the same set.
func (s *Set) String() string { return s.text }

// Warnings returns warnings on valid but possibly surprising settings, such as a budget that no policy names.
func (s *Set) Warnings() []Diagnostic { return slices.Clone(s.warnings) }
