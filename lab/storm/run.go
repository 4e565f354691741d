// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
)

// outcome is what came out of a storm: a result for each client, the one without retries first.
type outcome struct {
	storm   storm
	clients []client
	results []result
}

// result is what was measured of a client in a storm, and said of it.
type result struct {
	outage.Result

	series   outage.Series
	verdicts []verdict
}

// beforeTrouble is how much of the lead-in a series shows.
const beforeTrouble = time.Second

// run plays a storm for all clients, some at a time, and judges them. Those whose calls the machine made begin too
// late are played again, at most as often as o says. onEnd is called whenever a call has ended.
func run(ctx context.Context, s storm, all []client, o options, onEnd func()) (*outcome, error) {
	out := &outcome{storm: s, clients: all}
	calls := outage.Arrivals(s.Scenario, o.seed)
	for i := 0; i < len(all); i += o.parallel {
		group := outage.Outage{Scenario: s.Scenario, Calls: calls, OnEnd: func(int) { onEnd() }}
		for _, c := range all[i:min(i+o.parallel, len(all))] {
			group.Clients = append(group.Clients, c.in(s))
		}
		results, err := leastLate(o.repeat, func() ([]result, error) { return play(ctx, &group) })
		if err != nil {
			return nil, err
		}
		out.results = append(out.results, results...)
	}
	out.judge()
	return out, nil
}

func play(ctx context.Context, group *outage.Outage) ([]result, error) {
	records, err := group.Play(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]result, len(records))
	for i := range records {
		r := &records[i]
		results[i] = result{Result: r.Measure(), series: r.Series(max(r.Scenario.TroubleStart()-beforeTrouble, 0))}
	}
	return results, nil
}

// leastLate runs until no call is too late, at most repeat times more, and returns the results of the run in which
// the calls were least late, whatever came of them.
func leastLate(repeat int, once func() ([]result, error)) ([]result, error) {
	best, err := once()
	for range repeat {
		if err != nil || latest(best) <= outage.TooLate {
			break
		}
		var results []result
		if results, err = once(); latest(results) < latest(best) {
			best = results
		}
	}
	return best, err
}

func latest(results []result) time.Duration {
	var most time.Duration
	for i := range results {
		most = max(most, results[i].Late)
	}
	return most
}

// planned is how long all storms take: each is played for some of its clients at a time.
func planned(storms []storm, o options) (sum time.Duration) {
	for _, s := range storms {
		groups := (len(s.clients(o.seed)) + o.parallel - 1) / o.parallel
		sum += s.Length() * time.Duration(groups)
	}
	return sum
}

// reached reports whether stagger reached all that it should. What could not be judged was not reached.
func (o *outcome) reached() bool {
	for i, c := range o.clients {
		if j := o.results[i].judgement(); c.ours && (j == miss || j == void) {
			return false
		}
	}
	return true
}

// ours is what became of stagger.
func (o *outcome) ours() []result {
	var list []result
	for i, c := range o.clients {
		if c.ours {
			list = append(list, o.results[i])
		}
	}
	return list
}
