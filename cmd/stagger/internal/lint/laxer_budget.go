// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

const (
	inFile     = "/" // prefix of keys at the top of the file, outside of entries
	throttling = inFile + "retryThrottling"
)

// payer is the budget of a method: its position in the file, and its settings; nil is no limit.
type payer struct {
	name   string
	key    string // "" if it is
	scope  policy.Scope
	config budget.Config
}

func (t terms) payer() payer {
	config := t.set.Config()
	name := t.policy.Budget()
	for i, b := range config.Budgets {
		if b.Name == name {
			return payer{name, inFile + document.Item("budgets", i), b.Scope, b.Config}
		}
	}
	switch {
	case name == policy.NoBudget:
		return payer{name: name}
	case config.Throttling != nil:
		return payer{"retryThrottling", throttling, policy.ScopeTarget, *config.Throttling}
	default:
		return payer{"the default", "", policy.ScopeTarget, budget.DefaultRatio()}
	}
}

// budgets compares the limits on the extra attempts of all calls together.
func (c *comparison) budgets() {
	was, now := c.was.payer(), c.now.payer()
	key := c.strategy() + ".budget"
	switch {
	case was.config == nil:
		return
	case now.config == nil:
		c.add(key, now.name, was.name)
		return
	}
	kind := func(b budget.Config) string { return fmt.Sprintf("%T", b) }
	if kind(was.config) != kind(now.config) {
		c.add(key, now.name+", of another kind", was.name)
		return
	}
	settings := &comparison{}
	if scopes := []policy.Scope{policy.ScopeProcess, policy.ScopeTarget, policy.ScopeService}; slices.Index(scopes, now.scope) > slices.Index(scopes, was.scope) {
		settings.add("scope", now.scope, was.scope)
	}
	settings.budget(was.config, now.config)
	for _, l := range settings.found {
		switch {
		case now.name != was.name || now.key == "":
			c.add(key, now.name+", whose "+l.key+" is "+l.now, was.name+", "+l.was)
		case now.key == throttling:
			c.add(now.key+strings.TrimPrefix(l.key, "throttle"), l.now, l.was)
		default:
			c.add(now.key+"."+l.key, l.now, l.was)
		}
	}
}

// budget compares two budgets, which are of one kind.
func (c *comparison) budget(was, now budget.Config) {
	switch now := now.(type) {
	case budget.RatioConfig:
		was, _ := was.(budget.RatioConfig)
		more(c, "ratio.percent", was.Percent, now.Percent)
		if was.Fleet != "" && now.Fleet == "" {
			c.add("ratio.fleet", "a reserve for each client", "the pool "+was.Fleet)
		} else if was.Fleet == now.Fleet {
			more(c, "ratio.minPerSecond", was.MinPerSecond, now.MinPerSecond)
		}
		more(c, "ratio.window", was.Window, now.Window)
		less(c, "ratio.timeoutCost", was.TimeoutCost, now.TimeoutCost)
		more(c, "ratio.timeoutBonus", was.TimeoutBonus, now.TimeoutBonus)
		less(c, "ratio.hedgeCost", hedgeCost(was), hedgeCost(now))
	case budget.ThrottleConfig:
		was, _ := was.(budget.ThrottleConfig)
		more(c, "throttle.maxTokens", was.MaxTokens, now.MaxTokens)
		more(c, "throttle.tokenRatio", was.TokenRatio, now.TokenRatio)
	case budget.ConcurrentConfig:
		was, _ := was.(budget.ConcurrentConfig)
		more(c, "concurrent.percent", was.Percent, now.Percent)
		more(c, "concurrent.min", was.Min, now.Min)
	case budget.RefundConfig:
		was, _ := was.(budget.RefundConfig)
		more(c, "refund.capacity", was.Capacity, now.Capacity)
		less(c, "refund.retryCost", was.RetryCost, now.RetryCost)
		less(c, "refund.timeoutCost", was.TimeoutCost, now.TimeoutCost)
		more(c, "refund.success", was.Success, now.Success)
	}
}

func hedgeCost(r budget.RatioConfig) float64 {
	if r.HedgeCost == 0 {
		return r.TimeoutCost
	}
	return r.HedgeCost
}
