// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"github.com/stagger-go/stagger/internal/balance"
)

// drainTime is how long after a change replacement balances start empty: the longest window of a
// ratio budget. Callers that are idle for longer call so rarely that a full reserve does no harm.
const drainTime = time.Minute

// replacedBalances are those that reloads have dropped because the kind or scope of their budgets changed. Their
// replacements start empty, so that a reload doesn't refill budgets.
type replacedBalances struct {
	byName map[string]*replacement
}

// replacement has the users of the dropped balances of one name.
type replacement struct {
	at      time.Duration // of the last reload that dropped one
	users   map[budgetUser]bool
	targets map[budgetUser]bool // the same, without their services
}

// noteReplaced records that a balance is dropped now.
func (r *replacedBalances) noteReplaced(key budgetKey, now time.Duration) {
	r.dropOld(now)
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

// before reports whether a reload has recently dropped a balance of calls that share the one with this key.
func (r *replacedBalances) before(key budgetKey, now time.Duration) bool {
	of := r.byName[key.name]
	if of == nil {
		return false
	}
	r.dropOld(now)
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

// sharedWith reports whether calls have used any of them: those in mode OBSERVE if shadow, otherwise the others.
func (r *replacement) sharedWith(shadow bool) bool {
	for u := range r.targets {
		if u.shadow == shadow {
			return true
		}
	}
	return false
}

// dropOld drops replacements older than drainTime.
func (r *replacedBalances) dropOld(now time.Duration) {
	for name, of := range r.byName {
		if now-of.at > drainTime {
			delete(r.byName, name)
		}
	}
}

// replacesBefore reports whether a target's service config has just changed and the calls of this key had a balance of
// another kind or source before.
func (r *Retrier) replacesBefore(key budgetKey, now time.Duration) bool {
	changed, ok := r.serviceConfigs.targets.changed(key.target)
	if !ok || now-changed > drainTime {
		return false
	}
	other := key
	for _, other.kind = range balance.Names() {
		for _, other.source = range []string{budgetOfPolicies, budgetOfServiceConfig} {
			if found, ok := r.budgets.loadBalance(other); ok && other != key && found.made < changed {
				return true
			}
		}
	}
	return false
}
