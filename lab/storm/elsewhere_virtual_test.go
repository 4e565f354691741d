// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/must"
)

// The benefit of retries at another backend, from any number of connections.
//
//	go test ./storm -run RetryElsewhere -v
func TestRetryElsewhereBesideItsPeers(t *testing.T) {
	t.Parallel()
	all := must.Get(elsewhereStorms())(t)
	for _, s := range all {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			o := playVirtually(t, s, s.clients(1))
			o.forgive(t)
			checkClaims(t, o)
		})
	}
}

// forgive removes verdicts on a p999 that is up to a quarter too long: it is that of the fifth slowest call, which waits in
// a queue, and differs between runs.
func (o *outcome) forgive(t *testing.T) {
	t.Helper()
	for i, c := range o.clients {
		r := &o.results[i]
		most := o.storm.targetOf(c).p999
		r.verdicts = slices.DeleteFunc(r.verdicts, func(v verdict) bool {
			forgiven := v.judgement == miss && strings.HasPrefix(v.claim, "p999 ") && r.P999 <= most+most/4
			if forgiven {
				t.Logf("%s: %s: %s", c.name, v.claim, v.is)
			}
			return forgiven
		})
	}
}

// In the other storms, retries at another backend make nothing worse.
func TestRetryElsewhereInOtherStorms(t *testing.T) {
	t.Parallel()
	for _, s := range allStorms(t) {
		if strings.HasPrefix(s.Title, "one ") || s.chain() && !*everyPeer { // see above; chains take the most time
			continue
		}
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			who := elsewhereClients(1)[:7] // no retries, and
			o := playVirtually(t, s, who)
			for i := 1; i <= 3; i++ {
				without, with := o.results[i], o.results[i+3]
				if who[i+3].retries != whereElsewhere || who[i].connections != who[i+3].connections {
					t.Fatalf("%s is compared with %s", who[i].name, who[i+3].name)
				}
				if lower(with, without) || later(with, without) || with.PerCall > without.PerCall*1.02 {
					t.Errorf("%s: success %s, recovered in %s s, %.2f requests per call; want it no worse than %s, %s s, %.2f", who[i+3].name,
						percent(with), with.Recovery, with.PerCall, percent(without), without.Recovery, without.PerCall)
				}
			}
		})
	}
}

// The policies differ only in where retries go.
func TestRetryElsewherePolicies(t *testing.T) {
	t.Parallel()
	plain := must.Get(policies(storm{}, wherePicked))(t)
	for retries, want := range map[where]bool{whereElsewhere: false, whereElsewhereAtOnce: true} {
		set := must.Get(policies(storm{leaf: leastRequest}, retries))(t)
		if config, _ := decision.Compile(set).LoadBalancing(); config != `[{"stagger_retry_elsewhere":{"childPolicy":[{"least_request_experimental":{}}]}}]` {
			t.Errorf("load balancing %s", config)
		}
		for _, p := range set.Policies() {
			if retry := p.Spec().Retry; retry != nil && retry.FirstRetryAtOnce != want {
				t.Errorf("%s: the first retry is sent at once: %v; want %v", p.Name(), retry.FirstRetryAtOnce, want)
			}
		}
		for _, c := range decision.Changes(plain, set) {
			if !strings.HasPrefix(c, "loadBalancingConfig ") && (!strings.HasPrefix(c, "policy ") || retries == whereElsewhere) {
				t.Errorf("the file differs in more than where retries go: %v", c)
			}
		}
	}
}
