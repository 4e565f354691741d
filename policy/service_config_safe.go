// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/lookup"
)

// leftOut is a name whose policy is removed for clients that don't check whether a method is idempotent.
type leftOut struct {
	index int // methodConfig[…].name[index]
	name  string
	key   string // "retryPolicy" or "hedgingPolicy"
	why   string
}

// withoutPatterns returns the entry with packages, which gRPC lacks, replaced by the services that descriptors have, and the
// index of each name in the original entry. unknown are packages without a known service.
func (s *Set) withoutPatterns(m MethodConfig) (plain MethodConfig, at, unknown []int) {
	plain = m
	plain.Names = nil
	for j, name := range m.Names {
		if lookup.Package(name) == "" {
			plain.Names, at = append(plain.Names, name), append(at, j)
			continue
		}
		before := len(at)
		for d := range s.servicesOf(name) {
			if service := nameOfService(d); s.named(service) == s.named(name) {
				plain.Names, at = append(plain.Names, service), append(at, j)
			}
		}
		if len(at) == before {
			unknown = append(unknown, j)
		}
	}
	return plain, at, unknown
}

// split splits entry i in two: one for the methods that any client may retry, and one without a policy for the others. The
// second stays even if it is otherwise empty, because it hides less specific entries from its methods. at has the index of each
// name in the original entry.
func (s *Set) split(i int, m MethodConfig, at []int) (parts []MethodConfig, left []leftOut) {
	key := retryKey
	switch {
	case m.Hedge != nil:
		key = hedgeKey
	case m.Retry == nil:
		return []MethodConfig{m}, nil
	}
	safe, rest := m, m
	safe.Names, safe.Idempotency = nil, IdempotencyAssume
	rest.Names, rest.Retry, rest.Hedge, rest.IdempotencyKey = nil, nil, nil, ""
	keyed := m.IdempotencyKey != "" && cmp.Or(s.config.Methods[i].Idempotency, s.config.Idempotency) != IdempotencyAssume
	for j, name := range m.Names {
		declared := s.named(name).spec.Idempotency
		if declared == IdempotencyAssume && !keyed {
			safe.Names = append(safe.Names, name)
			continue
		}
		var methods []string // declared idempotent by their descriptors
		if declared != IdempotencyNone {
			methods, _ = methodsOf(name, s)
		}
		safe.Names = append(safe.Names, methods...)
		if namesMethod(name) && len(methods) > 0 {
			continue
		}
		rest.Names = append(rest.Names, name)
		left = append(left, leftOut{at[j], name, key, why(declared, keyed, methods)})
	}
	if len(safe.Names) > 0 || len(m.Names) == 0 {
		parts = append(parts, safe)
	}
	if len(rest.Names) > 0 {
		parts = append(parts, rest)
	}
	return parts, left
}

func why(declared Idempotency, keyed bool, but []string) string {
	because := "nothing declares it idempotent"
	switch {
	case keyed:
		because = "gRPC sends no idempotency key"
	case declared == IdempotencyNone:
		because = "idempotency is NONE"
	}
	if len(but) == 0 {
		return because
	}
	list := make([]string, len(but))
	for i, n := range but {
		_, list[i] = lookup.Split(n)
	}
	return because + ", but for " + strings.Join(list, ", ")
}

// named returns the policy of an entry's name.
func (s *Set) named(name string) *Policy {
	return s.Lookup(name)
}

// unknownPackages notes packages without a known service.
func (n *configNotes) unknownPackages(path string, names []string, unknown []int) {
	for _, j := range unknown {
		n.add(document.Item(path+".name", j), names[j], "left out: gRPC knows no packages, and no descriptor of its services is given")
	}
}

// leftOut notes the removed policies of an entry.
func (n *configNotes) leftOut(path string, list []leftOut) {
	for _, l := range list {
		n.add(document.Item(path+".name", l.index), l.name, l.key+" left out: "+l.why)
	}
}

// elsewhere warns of entries and names whose methods other clients would retry, if they used the same file.
func (s *Set) elsewhere(report *document.Report) []Diagnostic {
	var list []Diagnostic
	warn := func(field, value, why string) {
		list = append(list, locate(report, Diagnostic{
			Severity: SeverityWarning, Field: field, Value: value,
			Message: "other gRPC clients that are given this file retry it anyway (" + why + `); give them what "stagger export" writes`,
		}))
	}
	for i, m := range s.entries()[:len(s.config.Methods)] {
		m, key, why := s.enforced(m)
		if key != "" {
			warn(document.Item("methodConfig", i)+"."+key, "", why)
		}
		at := make([]int, 0, len(m.Names))
		names := m.Names[:0:0]
		for j, name := range m.Names {
			if lookup.Package(name) == "" { // gRPC never matches packages
				names, at = append(names, name), append(at, j)
			}
		}
		m.Names = names
		_, left := s.split(i, m, at)
		for _, l := range left {
			warn(fmt.Sprintf("methodConfig[%d].name[%d]", i, l.index), strconv.Quote(l.name), l.why)
		}
	}
	return list
}
