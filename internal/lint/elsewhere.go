// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

const balancingKey = spec.BalancingKey

// elsewhere returns the loadBalancingConfig, if it sends retries to another backend.
func (l *linter) elsewhere() string {
	channel := l.set.Compiled().Channel()
	return balancing.Config(channel)
}

// lintElsewhere reports what package elsewhere refuses, except for policies that only a program knows to be missing. It notes which
// package a program imports, and warns of stagger_retry_elsewhere in a place that gRPC never reaches.
func (l *linter) lintElsewhere() {
	if l.elsewhere() == "" {
		return
	}
	list := l.report.Node(balancingKey)
	l.checkChildren(balancingKey, list)
	l.note(balancingKey, fmt.Sprintf("a program must import %s to read this file: import _ %q", balancing.Policy, balancing.Package))
	for i, n := range list.Items {
		if names(n, balancing.Policy) {
			return
		}
		for _, e := range n.Entries {
			if e.Key == "round_robin" || e.Key == "pick_first" {
				l.warn(document.Item(balancingKey, i), e.Key, "gRPC takes the first policy of the list that it knows, and "+
					"so never %s behind it; list that first", balancing.Policy)
				return
			}
		}
	}
}

// lintBalancers notes the packages that a program imports for the file's load balancing, and warns of policies that gRPC doesn't have:
// only a program knows which others it has.
func (l *linter) lintBalancers() {
	field, list := balancingKey, l.report.Node(balancingKey)
	var names []string
	if list != nil {
		names = l.misspelt(field, list)
	} else if one := l.report.Node(spec.BalancingPolicyKey); one != nil {
		field, names = spec.BalancingPolicyKey, []string{one.Text}
	}
	known := slices.IndexFunc(names, balancing.Known)
	switch {
	case len(names) == 0:
	case known < 0:
		l.warn(field, nil, "gRPC for Go has no policy %s: a program that doesn't register it leaves this out; %s",
			strings.Join(names, ", "), balancing.Remedy(names, document.Nearest))
	case list == nil:
		l.noteImports(field, names[known:known+1])
	default:
		l.noteImports(field, append([]string{names[known]}, inside(list.Items[known])...))
	}
}

// noteImports notes the packages that register load balancing policies, except for stagger_retry_elsewhere, which lintElsewhere notes.
func (l *linter) noteImports(field string, names []string) {
	noted := map[string]bool{balancing.Policy: true}
	for _, name := range names {
		if balancing.Imported(name) && !noted[name] {
			l.note(field, "a program must have it: "+balancing.Remedy([]string{name}, document.Nearest))
		}
		noted[name] = true
	}
}

// inside returns the names of the load balancing policies that a policy picks its children from, at any depth. Of a list, gRPC takes the
// first that it knows.
func inside(n *document.Node) (names []string) {
	for _, e := range n.Entries {
		if e.Key == "childPolicy" {
			children := e.Value.Items
			known := slices.IndexFunc(children, func(child *document.Node) bool {
				return len(child.Entries) == 1 && balancing.Known(child.Entries[0].Key)
			})
			if known >= 0 {
				names = append(names, children[known].Entries[0].Key)
				names = append(names, inside(children[known])...)
			}
			continue
		}
		names = append(names, inside(e.Value)...)
	}
	for _, item := range n.Items {
		names = append(names, inside(item)...)
	}
	return names
}

// noteNotBalanced notes, once, that retries of a file that names no load balancing go back to one backend.
func (l *linter) noteNotBalanced() {
	retried := slices.ContainsFunc(l.config.Methods, func(m spec.MethodConfig) bool { return m.Retry != nil || m.Hedge != nil })
	if !retried || l.report.Written(balancingKey) || l.report.Written(spec.BalancingPolicyKey) {
		return
	}
	l.note("methodConfig", "the file names no load balancing. If the program names none either, gRPC's own, pick_first, sends all calls and "+
		"their retries to one backend. For several backends, write loadBalancingConfig: [{round_robin: {}}] at the top of the "+
		"file; for one address, such as a proxy's, [{pick_first: {}}]")
}

// misspelt warns of names in a list of load balancing policies that resemble one of gRPC's, in front of one that gRPC has, or in a
// childPolicy. It returns the names of the list.
func (l *linter) misspelt(field string, list *document.Node) (names []string) {
	for _, item := range list.Items {
		for _, e := range item.Entries {
			names = append(names, e.Key)
		}
	}
	inside := field != balancingKey
	for i, item := range list.Items {
		at := document.Item(field, i)
		for _, e := range item.Entries {
			if near := balancing.Near(e.Key, document.Nearest); near != "" && (inside || slices.ContainsFunc(names, balancing.Known)) {
				l.warn(at, e.Key, "gRPC for Go has no such policy; did you mean %s?", near)
			}
			if children := e.Value.Get("childPolicy"); children != nil {
				l.misspelt(document.Under(document.Under(at, e.Key), "childPolicy"), children)
			}
		}
	}
	return names
}

// names reports whether a key is in n, at any depth.
func names(n *document.Node, key string) bool {
	return slices.ContainsFunc(n.Entries, func(e document.Entry) bool { return e.Key == key || names(e.Value, key) }) ||
		slices.ContainsFunc(n.Items, func(n *document.Node) bool { return names(n, key) })
}

// checkChildren reports each stagger_retry_elsewhere without a child policy, at any depth in n.
func (l *linter) checkChildren(field string, n *document.Node) {
	for _, e := range n.Entries {
		inside := document.Under(field, e.Key)
		if e.Key == balancing.Policy {
			l.checkChild(document.Under(inside, "childPolicy"), e.Value.Get("childPolicy"))
		}
		l.checkChildren(inside, e.Value)
	}
	for i, item := range n.Items {
		l.checkChildren(document.Item(field, i), item)
	}
}

// checkChild reports a list of child policies that package elsewhere can't read; nil if the key is missing.
func (l *linter) checkChild(field string, list *document.Node) {
	if list == nil || list.Kind != document.List || len(list.Items) == 0 {
		l.report.Errorf(field, nil, "must list the policy that picks, such as [{round_robin: {}}]; of several, gRPC takes "+
			"the first that the program knows")
		return
	}
	for i, item := range list.Items {
		if item.Kind != document.Object || len(item.Entries) != 1 {
			l.report.Errorf(document.Item(field, i), nil, "must be a map with one key, a load balancing policy, such as {round_robin: {}}")
		}
	}
}
