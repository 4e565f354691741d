// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/stagger-go/stagger/internal/tools/outage"
)

// outcome has the results of a storm: one for each client, the first without retries.
type outcome struct {
	storm   storm
	clients []client
	results []result
}

// result has the measurements and verdicts of a client in a storm.
type result struct {
	outage.Result

	series   outage.Series
	verdicts []verdict
}

// beforeTrouble is the part of the lead-in that a series shows.
const beforeTrouble = time.Second

// run plays a storm for all clients, some in parallel, and judges them. Clients whose calls began too late because of the
// machine are played again, at most as often as o says. onEnd is called whenever a call has ended.
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

// leastLate runs until no call is too late, at most repeat more times. It returns the results of the run with the smallest
// delay.
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

// planned returns the time for all storms: each is played for some of its clients in parallel.
func planned(storms []storm, o options) (sum time.Duration) {
	for _, s := range storms {
		groups := (len(s.clients(o.seed)) + o.parallel - 1) / o.parallel
		sum += s.Length() * time.Duration(groups)
	}
	return sum
}

// reached reports whether stagger reached all its targets. A target that could not be judged was not reached.
func (o *outcome) reached() bool {
	for i, c := range o.clients {
		if j := o.results[i].judgement(); c.ours && (j == miss || j == void) {
			return false
		}
	}
	return true
}

// ours returns stagger's results.
func (o *outcome) ours() []result {
	var list []result
	for i, c := range o.clients {
		if c.ours {
			list = append(list, o.results[i])
		}
	}
	return list
}
