// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
)

// entries is a policy file: budgets as they are written, and which of them pays for GetOrder, ListOrders and so on.
type entries struct {
	budgets string
	pays    map[string]string // by method; "" is the default budget
}

const (
	twenty     = "{name: %s, bucket: {size: 20, perSuccess: 0}}"
	perService = "{name: %s, scope: SERVICE, bucket: {size: 20, perSuccess: 0}}"
	throttle   = "{name: %s, throttle: {maxTokens: 40, tokenRatio: 0.1}}"
)

// named returns budgets with these names.
func named(form string, names ...string) string {
	written := make([]string, 0, len(names))
	for _, name := range names {
		written = append(written, fmt.Sprintf(form, name))
	}
	return "budgets: [" + strings.Join(written, ", ") + "]"
}

func (e entries) file() string {
	var b strings.Builder
	b.WriteString(e.budgets + "\nmethodConfig:\n")
	for method, name := range e.pays {
		budget := ""
		if name != "" {
			budget = ", budget: " + name
		}
		fmt.Fprintf(&b, "- name: [{service: acme.orders.v1.OrderService, method: %s}]\n  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, "+
			"maxBackoff: 0.1s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]%s}\n", method, budget)
	}
	return b.String()
}

// follow replaces the policies.
func (s scene) follow(t *testing.T, e entries) {
	t.Helper()
	testkit.NoError(t, s.retrier.Reload(mustParse(t, e.file())))
}

// extra makes calls that fail, and returns how many extra attempts the server sees.
func (s scene) extra(t *testing.T, method string, calls int) int {
	t.Helper()
	before := s.Count(method)
	for range calls {
		_, _ = s.call(t.Context(), method)
	}
	return s.Count(method) - before - calls
}

// In an outage, ten new names of a budget are one budget.
func TestReload_NewNames(t *testing.T) {
	for name, file := range map[string]func(i int) entries{
		"renamed": func(i int) entries {
			name := fmt.Sprintf("v%d", i)
			return entries{named(twenty, name), map[string]string{"GetOrder": name}}
		},
		"all are declared": func(i int) entries {
			return entries{named(twenty, "v0", "v1", "v2", "v3", "v4"), map[string]string{"GetOrder": fmt.Sprintf("v%d", i%5)}}
		},
		"two by turns": func(i int) entries {
			name := fmt.Sprintf("v%d", i%2)
			return entries{named(twenty, name), map[string]string{"GetOrder": name}}
		},
		"of a service": func(i int) entries {
			name := fmt.Sprintf("v%d", i)
			return entries{named(perService, name), map[string]string{"GetOrder": name}}
		},
		"another scope each time": func(i int) entries {
			name := fmt.Sprintf("v%d", i)
			return entries{named([]string{twenty, perService}[i%2], name), map[string]string{"GetOrder": name}}
		},
		"another kind each time": func(i int) entries {
			name := fmt.Sprintf("v%d", i)
			return entries{named([]string{twenty, throttle}[i%2], name), map[string]string{"GetOrder": name}}
		},
		"throttles": func(i int) entries {
			name := fmt.Sprintf("v%d", i)
			return entries{named(throttle, name), map[string]string{"GetOrder": name}}
		},
		"and the default": func(i int) entries {
			return entries{named(twenty, "v1"), map[string]string{"GetOrder": []string{"v1", ""}[i%2]}}
		},
	} {
		for kind, each := range map[string]int{"all is spent each time": 30, "some": 2, "and a version that nobody calls": 0} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, spec.Config{}, func(t *testing.T, s scene) {
					s.On("*", down())
					s.follow(t, file(0))
					extra := s.extra(t, get, 2)
					for i := range 10 {
						s.follow(t, file(i+1))
						if each > 0 || i%2 == 1 {
							extra += s.extra(t, get, max(each, 5))
						}
					}
					if extra > 20 || extra < 6 {
						t.Errorf("%d extra attempts; want at most 20, and some", extra)
					}
				})
			})
		}
	}
}

// A balance under a new name begins as full as the one before, and is scaled to its size.
func TestReload_KeepsWhatIsLeft(t *testing.T) {
	before := entries{named(twenty, "a"), map[string]string{"GetOrder": "a"}}
	ofA := map[string]string{"GetOrder": "b"}
	for name, row := range map[string]struct {
		after entries
		want  float64 // of 20, of which 15 are left
	}{
		"another name":                   {entries{named(twenty, "b"), ofA}, 15},
		"and the old one is still there": {entries{named(twenty, "a", "b"), ofA}, 15},
		"another name and size":          {entries{named("{name: %s, bucket: {size: 40, perSuccess: 0}}", "b"), ofA}, 30},
		"another name and scope":         {entries{named(perService, "b"), ofA}, 0},
		"an entry for another method": {
			entries{named(twenty, "a", "b"), map[string]string{"GetOrder": "a", "ListOrders": "b"}}, 15,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, spec.Config{}, func(t *testing.T, s scene) {
				s.On("*", down())
				s.follow(t, before)
				_ = s.extra(t, get, 1)
				for range 2 {
					_, _ = s.call(t.Context(), get, interceptor.MaxAttempts(2))
				}
				s.follow(t, row.after)
				s.On("*", text("fine"))
				_, _ = s.call(t.Context(), get)
				balances := inUse(s.retrier)
				last := balances[len(balances)-1]
				if row.after.pays["GetOrder"] == "a" {
					last = balances[0]
				}
				if last.Balance < row.want-0.01 || last.Balance > row.want+0.2 {
					t.Errorf("%+v; want a balance of %v", balances, row.want)
				}
			})
		})
	}
}

// A method that gets an entry of its own takes no full budget along, and one that moves to a budget of others shares what those have.
func TestReload_MovesBetweenBudgets(t *testing.T) {
	t.Run("an entry of its own", func(t *testing.T) {
		play(t, spec.Config{}, func(t *testing.T, s scene) {
			s.On("*", down())
			const ofService = "budgets: [{name: a, bucket: {size: 20, perSuccess: 0}}, {name: b, bucket: {size: 20, perSuccess: 0}}]\nmethodConfig:\n" +
				"- name: [{service: acme.orders.v1.OrderService}]\n  idempotency: ASSUME\n  retryPolicy: &r {maxAttempts: 4, initialBackoff: 0.1s, " +
				"maxBackoff: 0.1s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE], budget: a}\n"
			testkit.NoError(t, s.retrier.Reload(mustParse(t, ofService)))
			if got := s.extra(t, get, 30); got != 20 {
				t.Errorf("%d extra attempts; want 20", got)
			}
			testkit.NoError(t, s.retrier.Reload(mustParse(t, strings.ReplaceAll(ofService, "&r ", "")+
				"- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]\n  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, "+
				"maxBackoff: 0.1s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE], budget: b}\n")))
			if got := s.extra(t, get, 30) + s.extra(t, list, 30); got > 1 { // time fills them a little
				t.Errorf("%d extra attempts after the reload; want none", got)
			}
		})
	})
	t.Run("to the budget of others", func(t *testing.T) {
		play(t, spec.Config{}, func(t *testing.T, s scene) {
			s.On("*", down())
			s.follow(t, entries{named(twenty, "a", "b"), map[string]string{"GetOrder": "a", "ListOrders": "b"}})
			if got := s.extra(t, get, 30) + s.extra(t, list, 3); got != 20+9 {
				t.Errorf("%d extra attempts; want 20 and 9", got)
			}
			s.follow(t, entries{named(twenty, "a", "b"), map[string]string{"GetOrder": "b", "ListOrders": "b"}})
			if got := s.extra(t, list, 30) + s.extra(t, get, 30); got < 11 || got > 12 {
				t.Errorf("%d extra attempts after the reload; want the 11 that were left", got)
			}
		})
	})
	t.Run("to the budget of others, at a target that those never call", func(t *testing.T) {
		play(t, spec.Config{}, func(t *testing.T, s scene) {
			s.On("*", down())
			s.follow(t, entries{named(twenty, "a", "b"), map[string]string{"GetOrder": "a", "ListOrders": "b"}})
			_ = s.extra(t, get, 30)
			s.follow(t, entries{named(twenty, "a", "b"), map[string]string{"GetOrder": "b", "ListOrders": "b"}})
			if got := s.extra(t, get, 30); got > 1 {
				t.Errorf("%d extra attempts after the reload; want none", got)
			}
		})
	})
}
