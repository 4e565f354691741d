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

// Set has the policies of a program, and the budgets that they name. It never changes, and is safe for concurrent use.
type Set struct {
	config Config
	byPath lookup.Table[Policy]
	list   []*Policy // in the order of the config
	mode   Mode      // of all calls

	balancingAt Diagnostic
	elsewhereAt Diagnostic            // of the first entry that names stagger_retry_elsewhere
	namesAt     map[string]Diagnostic // the place of each name
	admissionAt []Diagnostic          // of each entry with admission REFUSE

	warnings []Diagnostic
	source   string            // the name of the text that it was parsed from, or ""
	digest   [sha256.Size]byte // of that text, or zero
}

// NewSet checks a config and returns its set. The error is an [*Error] with all errors in it.
func NewSet(c Config) (*Set, error) {
	return newSet(c, &document.Report{})
}

// newSet adds to the errors that parsing a file has reported.
func newSet(c Config, report *document.Report) (*Set, error) {
	checkConfig(report, c)
	if err := report.Err(); err != nil {
		return nil, err
	}
	s := &Set{
		config: c.clone(),
		byPath: lookup.Table[Policy]{},

		namesAt:     map[string]Diagnostic{},
		balancingAt: report.Locate(Diagnostic{Severity: document.SeverityError, Field: balancingKey}),
		elsewhereAt: report.Locate(Diagnostic{Severity: document.SeverityError, Field: c.channel.elsewhere()}),
	}
	s.mode = StrictestMode(c.Mode)
	s.config.MaxWaiting = cmp.Or(c.MaxWaiting, defaults.MaxWaiting)
	s.config.MaxAttemptsLimit = cmp.Or(c.MaxAttemptsLimit, defaults.MaxAttempts)
	for i := range s.config.Budgets {
		b := &s.config.Budgets[i]
		b.Scope = cmp.Or(b.Scope, "TARGET")
	}
	for i, m := range c.Methods {
		if m.Admission == "REFUSE" {
			field := document.Item("methodConfig", i) + ".admission"
			s.admissionAt = append(s.admissionAt, report.Locate(Diagnostic{Severity: document.SeverityError, Field: field, Value: m.Admission}))
		}
		for j, name := range m.Names {
			field := document.Item(document.Item("methodConfig", i)+".name", j)
			s.namesAt[name] = report.Locate(Diagnostic{Severity: document.SeverityWarning, Field: field})
			spec := m.Spec
			spec.Idempotency = resolve(spec.Idempotency, c.Idempotency, name)
			p := newPolicy(spec)
			p.name, p.mode = name, StrictestMode(s.mode, p.mode)
			s.byPath[name] = p
			s.list = append(s.list, p)
		}
	}
	s.warnings = warnings(report, c)
	return s, nil
}

// Lookup returns the policy for a full method name ("/service/method"): of the entry that names the method, else its service,
// else everything, else nil. Entries are not merged. Lookup does not allocate.
func (s *Set) Lookup(method string) *Policy { return s.byPath.Find(method) }

// Policies returns the policies in the order of the config, one for each name.
func (s *Set) Policies() []*Policy { return slices.Clone(s.list) }

// Mode returns the mode of all calls, whatever their policy. Policies may be stricter.
func (s *Set) Mode() Mode { return s.mode }

// Config returns a copy of the set's config, with defaults for MaxWaiting, MaxAttemptsLimit and the budgets' scopes.
func (s *Set) Config() Config { return s.config.clone() }

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

// Warnings returns warnings on valid but possibly surprising settings, such as a budget that no policy names.
func (s *Set) Warnings() []Diagnostic { return slices.Clone(s.warnings) }
