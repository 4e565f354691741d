// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// The keys of which an entry, or a named policy, may have only one.
const (
	retryKey = "retryPolicy"
	hedgeKey = "hedgingPolicy"
)

var strategies = []string{retryKey, hedgeKey}

// shareNamed copies the node of a named policy to each entry that refers to it.
func shareNamed(report *document.Report, root *document.Node) {
	named := map[string]*document.Node{}
	for _, n := range itemsOf(root, "policies") {
		if name := n.Get("name"); name != nil && name.Kind == document.Text && named[name.Text] == nil {
			named[name.Text] = n
		}
	}
	for i, entry := range itemsOf(root, "methodConfig") {
		ref := entry.Get("policy")
		if ref == nil || ref.Kind != document.Text {
			continue
		}
		field := document.Item("methodConfig", i) + ".policy"
		own := slices.IndexFunc(strategies, func(key string) bool { return entry.Get(key) != nil })
		from := named[ref.Text]
		switch {
		case own >= 0:
			report.Errorf(field, ref.Text, "is given together with %s: keep one of the two", strategies[own])
			continue
		case from == nil:
			report.Errorf(field, ref.Text, "no policy has that name; declare it under policies")
			continue
		}
		for _, key := range strategies {
			if n := from.Get(key); n != nil {
				entry.AddEntry(document.Entry{Key: key, At: ref.At, Value: n})
			}
		}
	}
}

func itemsOf(n *document.Node, key string) []*document.Node {
	if list := n.Get(key); list != nil {
		return list.Items
	}
	return nil
}

// readNamed checks the named policies, and warns of unused ones.
func readNamed(report *document.Report, f *policyv1.PolicyFile, budgets map[string]bool) {
	var (
		used  = map[string]bool{}
		first = map[string]string{}
	)
	for _, m := range f.GetMethodConfig() {
		used[m.GetPolicy()] = true
	}
	for i, n := range f.GetPolicies() {
		path := document.Item("policies", i)
		name := path + ".name"
		switch before, twice := first[n.GetName()]; {
		case report.Skipped(name):
		case n.GetName() == "":
			report.Errorf(name, nil, "must be a name that entries refer to")
		case twice:
			report.Errorf(name, n.GetName(), "is the name of %s too", before)
		case !used[n.GetName()]:
			report.Warnf(name, n.GetName(), "no entry refers to this policy")
		}
		first[n.GetName()] = path
		var s Spec
		switch {
		case n.GetRetryPolicy() != nil:
			s.Retry = new(convertRetry(report, path+".retryPolicy", n.GetRetryPolicy()))
		case n.GetHedgingPolicy() != nil:
			s.Hedge = convertHedge(n.GetHedgingPolicy())
		case report.Whole(path):
			report.Errorf(path, nil, "must have a retryPolicy or a hedgingPolicy")
		}
		checkEntry(report, path+".", s, budgets)
	}
}
