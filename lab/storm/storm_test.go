// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

func allStorms(t *testing.T) []storm {
	t.Helper()
	return must.Get(storms())(t)
}

func TestStorms(t *testing.T) {
	t.Parallel()
	files := must.Get(embedded.ReadDir("storms"))(t)
	others := must.Get(elsewhereStorms())(t)
	all := slices.Concat(allStorms(t), others, gridStorms(t)[len(allStorms(t)):])
	if len(files) != len(all)-3 { // three others use existing files
		t.Errorf("%d files, %d storms; want each to be played", len(files), len(all))
	}
	var names []string
	for _, s := range all {
		if slices.Contains(names, s.Title) || s.About == "" {
			t.Errorf("storm %q: want a name of its own, and a line that says what happens", s.Title)
		}
		names = append(names, s.Title)
		if queue := s.last().Queue; queue != 75*s.last().Workers {
			t.Errorf("storm %q: a queue of %d; want 1.5 s of work, more than any call waits there", s.Title, queue)
		}
	}
}

func TestAllStormsTakeAtMostNineMinutes(t *testing.T) {
	t.Parallel()
	o := must.Get(parse(nil, t.Output()))(t)
	others := must.Get(elsewhereStorms())(t)
	all := append(allStorms(t), others...)
	if three, two := planned(all[:1], options{parallel: 5}), planned(all[:1], options{parallel: 6}); two != 2*all[0].Length() || three != 3*all[0].Length() {
		t.Errorf("%d clients, 6 and 5 at a time, take %v and %v; want 2 and 3 times %v", len(clients(1)), two, three, all[0].Length())
	}
	if took := planned(all, o); took > 9*time.Minute {
		t.Errorf("all storms take %v; want at most 9m", took)
	}
}

// Policies and peers have the same settings; storms differ only in the attempt timeout.
func TestPoliciesAreThoseOfThePeers(t *testing.T) {
	t.Parallel()
	set := must.Get(policies(storm{}, wherePicked))(t)
	var timeouts []time.Duration
	var first *policy.RetrySpec
	for _, s := range allStorms(t) {
		timeouts = append(timeouts, s.attemptTimeout)
		for i := range s.Services {
			for _, c := range s.Services[i].Calls {
				if c.Method != s.Fleets[0].Calls[0].Method {
					t.Errorf("%s: %s calls %s, and the users %s; want one method", s.Title, s.Services[i].Name, c.Method, s.Fleets[0].Calls[0].Method)
				}
			}
		}
		p := set.Lookup(s.Fleets[0].Calls[0].Method)
		retry := *p.Spec().Retry
		if retry.MaxAttempts != attempts {
			t.Errorf("%s: %d attempts; want %d, as the peers have", s.Title, retry.MaxAttempts, attempts)
		}
		if b := retry.Backoff; b.Initial != initialBackoff || b.Max != maxBackoff {
			t.Errorf("%s: backoff from %v to %v; want %v to %v, as the peers have", s.Title, b.Initial, b.Max, initialBackoff, maxBackoff)
		}
		retry.PerAttemptTimeout = 0
		if first == nil {
			first = &retry
		}
		if !reflect.DeepEqual(retry, *first) {
			t.Errorf("%s: %+v; want what the first storm has: %+v", s.Title, retry, *first)
		}
	}
	slices.Sort(timeouts)
	const ofTheGrid = 3 // hedges after two delays, and the README's first example
	if n := len(slices.Compact(timeouts)); n != len(set.Policies())-ofTheGrid {
		t.Errorf("%d policies for %d attempt timeouts, and for storms of the grid", len(set.Policies()), n)
	}
}

func TestPolicyFile(t *testing.T) {
	t.Parallel()
	set := must.Get(policies(storm{}, wherePicked))(t)
	if w := set.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
	if c := set.Config(); len(c.Budgets) > 0 || c.Throttling != nil {
		t.Error("the policies name a budget; want the default one, which the targets are for")
	}
	config := balance.DefaultRatio() // but for its reserve
	if got := config.Percent; got != 10 {
		t.Errorf("the default budget is %v %%; want 10, which the targets are for", got)
	}
	for _, s := range allStorms(t) {
		if got := config.Window; got != s.TroubleStart() {
			t.Errorf("the budget's window is %v; want that of the lead-in, %v, in which it earns all that it can hold", got, s.TroubleStart())
		}
	}
	if set.Lookup("/stagger.outage.WarmUp/Connect") != nil {
		t.Error("the calls that connect before a storm have a policy, and earn extra attempts; want none")
	}
}
