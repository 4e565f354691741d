// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/document"
)

// Set is the policies of a program, and the budgets that they name. It never changes, and is safe
// for concurrent use.
type Set struct {
	policies    []*Policy          // in the order of the config; then those that come with APIs, by their names
	byPath      map[string]*Policy // by "/service/method" and "/service/"
	byEntry     map[string]*Policy // those of them that stand in the config
	byPackage   map[string]*Policy // by "package"
	fallback    *Policy            // nil if no entry names everything
	budgets     []BudgetSpec
	throttle    *budget.ThrottleConfig
	assumed     Idempotency // for entries that say nothing of it
	waiting     int
	attempts    int            // the cap over the policies' maxAttempts
	reach       reach          // of all calls
	transparent Permission     // for entries that say nothing of it, and methods without an entry
	refused     Permission     // the same
	methods     []MethodConfig // the config's entries
	channel     channel

	balancing   string // see LoadBalancing
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
		byEntry:     map[string]*Policy{},
		byPackage:   map[string]*Policy{},
		budgets:     cloneBudgets(c.Budgets),
		throttle:    cloned(c.Throttling),
		assumed:     c.Idempotency,
		waiting:     cmp.Or(c.MaxWaiting, DefaultMaxWaiting),
		attempts:    cmp.Or(c.MaxAttemptsLimit, DefaultMaxAttemptsLimit),
		transparent: c.TransparentRetry,
		refused:     c.RefusedRetry,
		reach:       reachOf(c.Mode, c.Percent),
		channel:     c.channel,

		balancing:   c.channel.balancing(),
		balancingAt: locate(report, Diagnostic{Severity: SeverityError, Field: balancingKey}),
	}
	for _, m := range c.Methods {
		s.methods = append(s.methods, MethodConfig{slices.Clone(m.Names), m.clone()})
		s.add(m)
	}
	s.byPath = s.byEntry
	s.pending, s.wide = pendingWarnings(report, c), wideNames(report, c)
	s.warnings, s.undeclared = s.currentWarnings(), s.noteUndeclared()
	return s, nil
}

// add makes a policy for each name of an entry: what the entry leaves open depends on the name.
func (s *Set) add(m MethodConfig) {
	for _, name := range m.Names {
		p := compile(m.Spec)
		p.name, p.index = name, len(s.policies)
		s.policies = append(s.policies, p)
		p.spec.Idempotency = resolve(m.Idempotency, s.assumed, name)
		p.spec.TransparentRetry, p.spec.RefusedRetry = cmp.Or(m.TransparentRetry, s.transparent), cmp.Or(m.RefusedRetry, s.refused)
		p.reach = p.reach.and(s.reach)
		if name.Service == "" {
			s.fallback = p
			continue
		}
		s.byEntry[name.String()] = p
		if pkg := name.Package(); pkg != "" {
			s.byPackage[pkg] = p
		}
	}
}

// Lookup finds the policy for a full method name ("/service/method"): the entry that names the
// method, else the one for its service, else the one for the longest package, else the one for everything, else nil; or what
// [Set.WithDescriptors] has found where there is none. Entries are not merged. It does not allocate.
func (s *Set) Lookup(method string) *Policy {
	if p := s.byPath[method]; p != nil {
		return p
	}
	if p := s.byPath[method[:strings.LastIndexByte(method, '/')+1]]; p != nil {
		return p
	}
	if len(s.byPackage) > 0 {
		if p := s.packageOf(method); p != nil {
			return p
		}
	}
	return s.fallback
}

// packageOf is the policy for the longest package that has the service of a path.
func (s *Set) packageOf(path string) *Policy {
	pkg, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for {
		dot := strings.LastIndexByte(pkg, '.')
		if dot < 0 {
			return nil
		}
		pkg = pkg[:dot]
		if p := s.byPackage[pkg]; p != nil {
			return p
		}
	}
}

// Budgets returns the budgets that the policies may name.
func (s *Set) Budgets() []BudgetSpec { return cloneBudgets(s.budgets) }

// Throttling returns what the file's retryThrottling says, or nil: the budget of policies that
// name none.
func (s *Set) Throttling() *budget.ThrottleConfig { return cloned(s.throttle) }

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

// MaxWaiting is how many calls may wait in a backoff at a time.
func (s *Set) MaxWaiting() int { return s.waiting }

// MaxAttemptsLimit is the cap over the policies' maxAttempts.
func (s *Set) MaxAttemptsLimit() int { return s.attempts }

// Policies returns the policies in the order of the config, one for each name; [Policy.Name] says
// which. Those that come with APIs follow, in the order of their names ([Set.WithDescriptors]).
func (s *Set) Policies() []*Policy { return slices.Clone(s.policies) }

// Warnings returns diagnostics of what is not wrong but may surprise, such as a budget that no policy names. The
// methods that will not be retried, since nothing declares them idempotent, are counted in one [SeverityNote]: [Lint]
// names them.
func (s *Set) Warnings() []Diagnostic { return slices.Concat(s.warnings, s.undeclared) }

// Configured reports whether a policy of the set comes from its config, and not with an API
// ([Set.WithDescriptors]).
func (s *Set) Configured(p *Policy) bool {
	return p.index >= 0 && p.index < len(s.configured()) && s.policies[p.index] == p
}

// configured are the policies of the config alone.
func (s *Set) configured() []*Policy {
	n := len(s.byEntry)
	if s.fallback != nil {
		n++
	}
	return s.policies[:n]
}

// cloneBudgets copies budgets, and names a scope that is left at zero.
func cloneBudgets(budgets []BudgetSpec) []BudgetSpec {
	budgets = slices.Clone(budgets)
	for i := range budgets {
		budgets[i].Scope = cmp.Or(budgets[i].Scope, ScopeTarget)
	}
	return budgets
}
