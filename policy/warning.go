// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/lookup"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// pendingWarning is a warning on a config. Its message may depend on descriptors, which come later.
type pendingWarning struct {
	Diagnostic

	say func(*Set) string // returns the message, or "" for no warning; nil: use Message
}

// pendingWarnings returns the warnings of the report and of the config itself, in the order of the file.
func pendingWarnings(report *document.Report, c Config) []pendingWarning {
	for i, m := range c.Methods {
		if len(m.Names) == 0 { // valid, by the service config's specification
			report.Warnf(document.Item("methodConfig", i), nil, "names nothing, and is never used; name methods, a service or {} for everything, or remove it")
		}
	}
	warnNotDone(report, c)
	found := diagnosed(report.Warnings())
	list := make([]pendingWarning, 0, len(found)+len(c.Budgets))
	for _, p := range found {
		list = append(list, pendingWarning{Diagnostic: p})
	}
	for i, b := range c.Budgets {
		d := Diagnostic{Severity: SeverityWarning, Field: fmt.Sprintf("budgets[%d].name", i), Value: strconv.Quote(b.Name)}
		list = append(list, pendingWarning{locate(report, d), sayUnused(b.Name)})
	}
	slices.SortStableFunc(list, func(a, b pendingWarning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return list
}

// currentWarnings returns the warnings that apply with the set's descriptors.
func (s *Set) currentWarnings() []Diagnostic {
	var warnings []Diagnostic
	for _, r := range s.pending {
		if r.say != nil {
			r.Message = r.say(s)
		}
		if r.Message != "" {
			warnings = append(warnings, r.Diagnostic)
		}
	}
	return warnings
}

// sayUnused returns the warning on an unused budget.
func sayUnused(budget string) func(*Set) string {
	return func(s *Set) string {
		used := slices.ContainsFunc(s.policies, func(p *Policy) bool { return p.spec.budget() == budget })
		if used {
			return ""
		}
		return "no policy names this budget"
	}
}

// wideName is a name of an entry whose methods are retried only if they are declared idempotent elsewhere.
type wideName struct {
	Diagnostic // at the name

	name string
}

// wideNames returns the wide names of a config, with their places.
func wideNames(report *document.Report, c Config) (list []wideName) {
	for i, m := range c.Methods {
		for j, name := range m.Names {
			if (m.Retry != nil || m.Hedge != nil) && !namesMethod(name) && m.IdempotencyKey == "" &&
				resolve(m.Idempotency, c.Idempotency, name) == IdempotencyDeclared {
				list = append(list, wideName{locate(report, Diagnostic{
					Severity: SeverityNote, Field: fmt.Sprintf("methodConfig[%d].name[%d]", i, j), Value: strconv.Quote(name),
				}), name})
			}
		}
	}
	return list
}

// noteUndeclared counts the methods that will not be retried, in one line. [Lint] names them.
func (s *Set) noteUndeclared() []Diagnostic {
	var (
		methods, unknown int // methods in descriptors; names without a descriptor
		at               Diagnostic
	)
	for _, w := range s.wide {
		list, known := unsafeMethods(w.name, s)
		if methods += len(list); !known {
			unknown++
		}
		if at.Field == "" && (len(list) > 0 || !known) {
			at = Diagnostic{Severity: SeverityNote, File: w.File, Line: w.Line, Column: w.Column, Field: "methodConfig"}
		}
	}
	var which []string
	if methods > 0 {
		which = append(which, count(methods, "method", "methods"))
	}
	if unknown > 0 {
		which = append(which, "methods of "+count(unknown, "name", "names")+" without descriptors")
	}
	if len(which) == 0 {
		return nil
	}
	at.Message = strings.Join(which, " and ") + " not declared idempotent: retried only if the attempt never left the client; " +
		"\"stagger lint\" names them, and says how to declare them"
	return []Diagnostic{at}
}

// count returns n with the noun in singular or plural.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// listUndeclared names, for each name of an entry, the methods that will not be retried.
func (s *Set) listUndeclared() (notes []Diagnostic) {
	for _, w := range s.wide {
		unsafe, known := unsafeMethods(w.name, s)
		if known && len(unsafe) == 0 {
			continue
		}
		which := "methods"
		if known {
			which = atMost(unsafe)
		}
		w.Message = which + " will be retried only if the attempt never left the client, since nothing declares them idempotent; " +
			"name the method in an entry, set idempotency_level in its .proto, or add \"idempotency: ASSUME\" to this entry"
		notes = append(notes, w.Diagnostic)
	}
	return notes
}

// maxNamed bounds a note's length in a program with a thousand methods.
const maxNamed = 20

// unsafeMethods returns the methods that use the entry of this name and that aren't declared idempotent. known reports whether
// there was a descriptor.
func unsafeMethods(name string, s *Set) (unsafe []string, known bool) {
	safe, unsafe := methodsOf(name, s)
	return unsafe, len(safe)+len(unsafe) > 0
}

// methodsOf returns the known methods that use the entry of this name: idempotent ones, and the others.
func methodsOf(name string, s *Set) (safe, others []string) {
	for service := range s.servicesOf(name) {
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			n := pathOf(m)
			if p := s.Lookup(n); p == nil || p != s.named(name) {
				continue
			}
			if safeLevel(m) {
				safe = append(safe, n)
			} else {
				others = append(others, n)
			}
		}
	}
	slices.Sort(safe)
	slices.Sort(others)
	return safe, others
}

// servicesOf yields the known services that a name without a method applies to.
func (s *Set) servicesOf(name string) iter.Seq2[protoreflect.ServiceDescriptor, *protoregistry.Files] {
	if name == "/" {
		return s.descriptors.services()
	}
	if pkg := lookup.Package(name); pkg != "" {
		return func(yield func(protoreflect.ServiceDescriptor, *protoregistry.Files) bool) {
			for d, files := range s.descriptors.services() {
				if strings.HasPrefix(string(d.FullName()), pkg+".") && !yield(d, files) {
					return
				}
			}
		}
	}
	return func(yield func(protoreflect.ServiceDescriptor, *protoregistry.Files) bool) {
		service, _ := lookup.Split(name)
		if d := s.descriptors.service(service); d != nil {
			yield(d, nil)
		}
	}
}

// warnSpelling warns of spellings of codes that gRFC A6 allows, but for which gRPC for Go refuses the whole file. It checks
// only the codes of a retryPolicy.
func warnSpelling(report *document.Report, f *policyv1.PolicyFile) {
	for i, m := range f.GetMethodConfig() {
		field := document.Item("methodConfig", i) + ".retryPolicy.retryableStatusCodes"
		for j := range m.GetRetryPolicy().GetRetryableStatusCodes() {
			n := report.Node(document.Item(field, j))
			if n == nil || n.Kind != document.Text {
				continue
			}
			name := strings.ToUpper(n.Text)
			if name == "CANCELED" {
				name = "CANCELLED"
			}
			if name != n.Text {
				report.Warnf(document.Item(field, j), n.Text, "gRPC for Go refuses a service config with this spelling; write %s", name)
			}
		}
	}
}
