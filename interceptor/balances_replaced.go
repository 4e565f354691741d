// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
)

// drainTime is how long after a change those balances begin with nothing that take the place of others: the longest
// window of a ratio budget. Calls that were there before come in that time, or so seldom that a reserve does no harm.
const drainTime = time.Minute

// replacedBalances are those that reloads have dropped, since their budgets have become another kind or scope. What
// takes their place begins with nothing, so that a reload refills nothing.
type replacedBalances struct {
	byName map[string]*replacement
}

// replacement is the users of the balances of one name that were dropped.
type replacement struct {
	at      time.Duration // the last reload that has dropped one
	users   map[budgetUser]bool
	targets map[budgetUser]bool // the same, without their services
}

// noteReplaced notes a balance that is dropped now.
func (r *replacedBalances) noteReplaced(key budgetKey, now time.Duration) {
	r.forget(now)
	of := r.byName[key.name]
	if of == nil {
		of = &replacement{users: map[budgetUser]bool{}, targets: map[budgetUser]bool{}}
		if r.byName == nil {
			r.byName = map[string]*replacement{}
		}
		r.byName[key.name] = of
	}
	of.at = now
	of.users[key.budgetUser] = true
	of.targets[budgetUser{target: key.target, shadow: key.shadow}] = true
}

// before reports whether a reload has just dropped a balance for some of the calls that share the one with this key.
func (r *replacedBalances) before(key budgetKey, now time.Duration) bool {
	of := r.byName[key.name]
	if of == nil {
		return false
	}
	r.forget(now)
	target := budgetUser{target: key.target, shadow: key.shadow}
	switch {
	case now-of.at > drainTime:
		return false
	case of.users[budgetUser{shadow: key.shadow}], of.users[target], of.users[key.budgetUser]:
		return true
	case key.target == "":
		return of.sharedWith(key.shadow)
	default:
		return key.service == "" && of.targets[target]
	}
}

// sharedWith reports whether calls in mode OBSERVE, or others, have used any of them.
func (r *replacement) sharedWith(shadow bool) bool {
	for u := range r.targets {
		if u.shadow == shadow {
			return true
		}
	}
	return false
}

// forget drops what is too long ago.
func (r *replacedBalances) forget(now time.Duration) {
	for name, of := range r.byName {
		if now-of.at > drainTime {
			delete(r.byName, name)
		}
	}
}

// replacesBefore reports whether the service config of a target has just changed, and there is a balance from before of
// another kind or source for the calls of the one with this key.
func (r *Retrier) replacesBefore(key budgetKey, now time.Duration) bool {
	changed, ok := r.serviceConfigs.targets.changed(key.target)
	if !ok || now-changed > drainTime {
		return false
	}
	other := key
	for _, other.kind = range balance.Names() {
		for _, other.source = range []string{budgetOfPolicies, budgetOfServiceConfig} {
			if found, ok := r.budgets.load(other); ok && other != key && found.made < changed {
				return true
			}
		}
	}
	return false
}
