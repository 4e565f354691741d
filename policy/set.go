// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/lookup"
)

// Set is the policies of a program, and the budgets that they name. It never changes, and is safe
// for concurrent use.
type Set struct {
	config   Config
	policies []*Policy            // in the order of the config; then those that come with APIs, by their names
	byEntry  lookup.Table[Policy] // those of the config
	byPath   lookup.Table[Policy]

	balancing   string // see Config.balancing
	balancingAt Diagnostic

	pending    []pendingWarning // that the config gives reason for
	wide       []wideName       // whose methods need to be declared idempotent elsewhere
	warnings   []Diagnostic
	undeclared []Diagnostic      // one note, or none
	source     string            // the name of the text that it was read from; "" without one
	digest     [sha256.Size]byte // of that text; zero without one

	descriptors descriptors
}

// NewSet checks a config and makes a set of it. The error is an [*Error] with all that is wrong.
func NewSet(c Config) (*Set, error) {
	return newSet(c, &document.Report{})
}

// newSet adds to what the reading of a file has reported.
func newSet(c Config, report *document.Report) (*Set, error) {
	checkConfig(report, c)
	if err := refusal(report); err != nil {
		return nil, err
	}
	s := &Set{
		config: c.clone(),

		balancing:   c.balancing(),
		balancingAt: locate(report, Diagnostic{Severity: SeverityError, Field: balancingKey}),
	}
	s.config.MaxWaiting = cmp.Or(c.MaxWaiting, defaults.MaxWaiting)
	s.config.MaxAttemptsLimit = cmp.Or(c.MaxAttemptsLimit, defaults.MaxAttempts)
	for i := range s.config.Budgets {
		b := &s.config.Budgets[i]
		b.Scope = cmp.Or(b.Scope, ScopeTarget)
	}
	for _, m := range c.Methods {
		for _, name := range m.Names {
			p := s.newPolicy(name, m.Spec)
			s.policies = append(s.policies, p)
			s.byEntry.Put(name, p)
		}
	}
	s.byPath = s.byEntry
	s.pending, s.wide = pendingWarnings(report, c), wideNames(report, c)
	s.warnings, s.undeclared = s.currentWarnings(), s.noteUndeclared()
	return s, nil
}

// newPolicy makes the policy of a name from what a checked entry says.
func (s *Set) newPolicy(name string, spec Spec) *Policy {
	p := newPolicy(name, s.resolved(spec, name))
	p.own = reachOf(spec.Mode, spec.Percent)
	return p
}

// resolved fills in what a spec leaves to a name and to the config.
func (s *Set) resolved(spec Spec, name string) Spec {
	spec.Idempotency = resolve(spec.Idempotency, s.config.Idempotency, name)
	spec.TransparentRetry = cmp.Or(spec.TransparentRetry, s.config.TransparentRetry)
	spec.RefusedRetry = cmp.Or(spec.RefusedRetry, s.config.RefusedRetry)
	spec.Mode, spec.Percent = reachOf(s.config.Mode, s.config.Percent).and(reachOf(spec.Mode, spec.Percent)).said()
	return spec
}

// Lookup finds the policy for a full method name ("/service/method"): the entry that names the
// method, else the one for its service, else the one for the longest package, else the one for everything, else nil; or what
// [Set.WithDescriptors] has found where there is none. Entries are not merged. It does not allocate.
func (s *Set) Lookup(method string) *Policy { return s.byPath.Find(method) }

// Config returns a copy of what the set was made of, with the defaults of MaxWaiting, MaxAttemptsLimit and the budgets'
// scopes where it left them at zero. What comes with APIs ([Set.WithDescriptors]) is not in it.
func (s *Set) Config() Config { return s.config.clone() }

// Source is the name of the file that the set was read from, as it was given; "" if it was made in another way.
func (s *Set) Source() string { return s.source }

// Hash tells the texts of policy files apart: the first 12 digits of what sha256sum prints for the file. It is
// "" if the set was made in another way.
func (s *Set) Hash() string {
	if s.digest == [sha256.Size]byte{} {
		return ""
	}
	return hex.EncodeToString(s.digest[:6])
}

// Policies returns the policies in the order of the config, one for each name; [Policy.Name] says
// which. Those that come with APIs follow, in the order of their names ([Set.WithDescriptors]).
func (s *Set) Policies() []*Policy { return slices.Clone(s.policies) }

// Warnings returns diagnostics of what is not wrong but may surprise, such as a budget that no policy names. The
// methods that will not be retried, since nothing declares them idempotent, are counted in one [SeverityNote]: [Lint]
// names them.
func (s *Set) Warnings() []Diagnostic { return slices.Concat(s.warnings, s.undeclared) }

// configured are the policies of the config alone.
func (s *Set) configured() []*Policy {
	n := 0
	for _, m := range s.config.Methods {
		n += len(m.Names)
	}
	return s.policies[:n]
}
