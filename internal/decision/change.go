// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/stagger-go/stagger/policy"
)

// Changes lists how a set differs from an earlier one, one line each: policies by their names, then budgets, then the rest, in
// the order of the set, with removed ones at the end of each list. Differences in comments or spelling are not changes.
func Changes(before, after *policy.Set) []string {
	from, to := entries(before), entries(after)
	was, is := before.Config(), after.Config()
	list := slices.Concat(
		differences("policy", from, to, func(e entry) string { return e.name },
			func(a, b entry) bool { return reflect.DeepEqual(a.spec, b.spec) }),
		differences("budget", was.Budgets, is.Budgets, func(b policy.BudgetSpec) string { return b.Name },
			func(a, b policy.BudgetSpec) bool { return a == b }))
	switch {
	case was.Throttling == nil && is.Throttling != nil:
		list = append(list, "retryThrottling added")
	case was.Throttling != nil && is.Throttling == nil:
		list = append(list, "retryThrottling removed")
	case was.Throttling != nil && *was.Throttling != *is.Throttling:
		list = append(list, "retryThrottling changed")
	}
	if was.MaxWaiting != is.MaxWaiting {
		list = append(list, "maxWaiting changed")
	}
	if was.MaxAttemptsLimit != is.MaxAttemptsLimit {
		list = append(list, fmt.Sprintf("maxAttemptsLimit changed from %d to %d", was.MaxAttemptsLimit, is.MaxAttemptsLimit))
	}
	if denies(was.TransparentRetry) != denies(is.TransparentRetry) {
		list = append(list, "transparentRetry changed")
	}
	if denies(was.RefusedRetry) != denies(is.RefusedRetry) {
		list = append(list, "refusedRetry changed")
	}
	old, _ := loadBalancing(before)
	switch now, _ := loadBalancing(after); {
	case old == now:
	case old == "":
		list = append(list, "loadBalancingConfig added")
	case now == "":
		list = append(list, "loadBalancingConfig removed")
	default:
		list = append(list, "loadBalancingConfig changed")
	}
	list = appendModes(list, "mode", reachOf(was.Mode, was.Percent), reachOf(is.Mode, is.Percent))
	modes := map[string]reach{}
	for _, e := range from {
		modes[e.name] = reachOf(e.spec.Mode, e.spec.Percent)
	}
	for _, e := range to {
		if old, known := modes[e.name]; known {
			list = appendModes(list, "mode "+e.name, old, reachOf(e.spec.Mode, e.spec.Percent))
		}
	}
	return list
}

// entry is the policy of a name, from the config or an API.
type entry struct {
	name string
	spec policy.Spec // with only the entry's own mode
}

func entries(s *policy.Set) []entry {
	policies := s.Policies()
	list := make([]entry, len(policies))
	for i, p := range policies {
		list[i] = entry{p.Name(), p.Spec()}
		list[i].spec.Mode, list[i].spec.Percent = "", nil
	}
	i := 0
	for _, m := range s.Config().Methods {
		for range m.Names {
			list[i].spec.Mode, list[i].spec.Percent = m.Mode, m.Percent
			i++
		}
	}
	return list
}

// String returns a text such as "OFF" or "ENFORCE for 5 %".
func (r reach) String() string {
	if r.percent >= 100 {
		return string(r.mode)
	}
	return string(r.mode) + " for " + strconv.FormatFloat(r.percent, 'f', -1, 64) + " %"
}

func appendModes(list []string, what string, before, after reach) []string {
	if before == after {
		return list
	}
	return append(list, fmt.Sprintf("%s changed from %v to %v", what, before, after))
}

// differences compares two lists of values with unique names.
func differences[T any](what string, before, after []T, name func(T) string, same func(a, b T) bool) (list []string) {
	was := make(map[string]T, len(before))
	for _, v := range before {
		was[name(v)] = v
	}
	for _, v := range after {
		old, known := was[name(v)]
		delete(was, name(v))
		switch {
		case !known:
			list = append(list, what+" "+name(v)+" added")
		case !same(old, v):
			list = append(list, what+" "+name(v)+" changed")
		}
	}
	for _, v := range before {
		if _, gone := was[name(v)]; gone {
			list = append(list, what+" "+name(v)+" removed")
		}
	}
	return list
}
