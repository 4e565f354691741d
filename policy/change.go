// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"slices"
	"strconv"
)

// Change is one difference between two sets, for logs and people.
type Change struct {
	What ChangedPart
	Name string // of the policy, as [Name.String] has it, or of the budget; "" for what has none
	How  ChangeKind

	From, To string // of a mode, such as "ENFORCE" and "ENFORCE for 5 %", or of maxAttemptsLimit; else ""
}

// ChangedPart is the part of a set that differs.
type ChangedPart string

// The parts.
const (
	ChangedPolicy           ChangedPart = "policy"
	ChangedBudget           ChangedPart = "budget"
	ChangedRetryThrottling  ChangedPart = "retryThrottling" // the default budget, where the set throttles
	ChangedMaxWaiting       ChangedPart = "maxWaiting"
	ChangedMaxAttemptsLimit ChangedPart = "maxAttemptsLimit"
	ChangedLoadBalancing    ChangedPart = balancingKey       // where a Retrier brings it ([Set.LoadBalancing])
	ChangedTransparentRetry ChangedPart = "transparentRetry" // at the file's top
	ChangedRefusedRetry     ChangedPart = "refusedRetry"     // the same
	ChangedMode             ChangedPart = "mode"             // of all calls or of the policy of that name, or its percent
)

// ChangeKind is how a part differs.
type ChangeKind string

// The kinds.
const (
	ChangeAdded   ChangeKind = "added"
	ChangeRemoved ChangeKind = "removed"
	ChangeChanged ChangeKind = "changed"
)

// String is such as "budget orders changed" and "mode changed from ENFORCE to OFF".
func (c Change) String() string {
	text := string(c.What)
	if c.Name != "" {
		text += " " + c.Name
	}
	text += " " + string(c.How)
	if c.From != c.To {
		text += " from " + c.From + " to " + c.To
	}
	return text
}

// ChangesSince lists how the set differs from one before it: policies by their names, then budgets, then the
// rest, in the order of the set, with what was removed at the end of each. Sets whose files differ in comments or
// spelling only have no changes.
func (s *Set) ChangesSince(before *Set) []Change {
	policies := changes(before.policies, s.policies, ChangedPolicy,
		func(p *Policy) string { return p.name.String() },
		func(a, b *Policy) bool { return reflect.DeepEqual(a.spec, b.spec) })
	budgets := changes(before.budgets, s.budgets, ChangedBudget,
		func(b BudgetSpec) string { return b.Name },
		func(a, b BudgetSpec) bool { return a == b })
	list := slices.Concat(policies, budgets)
	switch was, is := before.throttle, s.throttle; {
	case was == nil && is != nil:
		list = append(list, Change{What: ChangedRetryThrottling, How: ChangeAdded})
	case was != nil && is == nil:
		list = append(list, Change{What: ChangedRetryThrottling, How: ChangeRemoved})
	case was != nil && *was != *is:
		list = append(list, Change{What: ChangedRetryThrottling, How: ChangeChanged})
	}
	if before.waiting != s.waiting {
		list = append(list, Change{What: ChangedMaxWaiting, How: ChangeChanged})
	}
	if before.attempts != s.attempts {
		list = append(list, Change{
			What: ChangedMaxAttemptsLimit, How: ChangeChanged, From: strconv.Itoa(before.attempts), To: strconv.Itoa(s.attempts),
		})
	}
	if before.transparent != s.transparent {
		list = append(list, Change{What: ChangedTransparentRetry, How: ChangeChanged})
	}
	if before.refused != s.refused {
		list = append(list, Change{What: ChangedRefusedRetry, How: ChangeChanged})
	}
	switch was, is := before.balancing, s.balancing; {
	case was == is:
	case was == "":
		list = append(list, Change{What: ChangedLoadBalancing, How: ChangeAdded})
	case is == "":
		list = append(list, Change{What: ChangedLoadBalancing, How: ChangeRemoved})
	default:
		list = append(list, Change{What: ChangedLoadBalancing, How: ChangeChanged})
	}
	list = appendModes(list, "", before.reach, s.reach)
	was := map[Name]reach{}
	for _, p := range before.policies {
		was[p.name] = reachOf(p.spec.Mode, p.spec.Percent)
	}
	for _, p := range s.policies {
		if old, known := was[p.name]; known {
			list = appendModes(list, p.name.String(), old, reachOf(p.spec.Mode, p.spec.Percent))
		}
	}
	return list
}

func appendModes(list []Change, name string, before, after reach) []Change {
	if before == after {
		return list
	}
	return append(list, Change{What: ChangedMode, Name: name, How: ChangeChanged, From: before.String(), To: after.String()})
}

// changes compares two lists of things with unique names.
func changes[T any](before, after []T, what ChangedPart, name func(T) string, same func(a, b T) bool) (list []Change) {
	was := make(map[string]T, len(before))
	for _, v := range before {
		was[name(v)] = v
	}
	for _, v := range after {
		old, known := was[name(v)]
		delete(was, name(v))
		switch {
		case !known:
			list = append(list, Change{What: what, Name: name(v), How: ChangeAdded})
		case !same(old, v):
			list = append(list, Change{What: what, Name: name(v), How: ChangeChanged})
		}
	}
	for _, v := range before {
		if _, gone := was[name(v)]; gone {
			list = append(list, Change{What: what, Name: name(v), How: ChangeRemoved})
		}
	}
	return list
}
