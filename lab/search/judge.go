// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
)

// Limits. One seed shows where to look; only the mean of five proves that a player is worse.
const (
	seeds      = 5
	suspicious = 0.01 // if worse than no retries by more under the first seed, the other seeds are played
	leastCalls = 0.02 // half of this success without retries can be lost
)

// judged has the outcomes of a scenario with all players.
type judged struct {
	Seed    uint64               `json:"seed"`
	Index   int                  `json:"index"`
	Words   string               `json:"words"`
	Warned  []string             `json:"warned,omitempty"`
	LowLoad bool                 `json:"lowLoad,omitempty"`
	Players map[string][]outcome `json:"players"` // by seed, from 1; no retries has at least as many as any other

	drawn *drawn
}

// judge plays a scenario once with each of these players, and under four more seeds with those that look worse than no
// retries, which must be the first. Least is the minimum number of seeds.
func judge(ctx context.Context, d *drawn, names []string, least int) (*judged, error) {
	j := &judged{Words: d.Words, Warned: d.Warned, LowLoad: d.LowLoad, Players: map[string][]outcome{}, drawn: d}
	var again []string
	for seed := 1; seed <= max(least, 1); seed++ {
		if err := j.play(ctx, uint64(seed), names); err != nil {
			return nil, err
		}
	}
	for _, name := range names[1:] {
		if j.loss(name) > suspicious || j.half(name) || j.never(name) {
			again = append(again, name)
		}
	}
	if len(again) == 0 {
		return j, nil
	}
	again = append([]string{noRetries}, again...)
	for seed := max(least, 1) + 1; seed <= seeds; seed++ {
		if err := j.play(ctx, uint64(seed), again); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (j *judged) play(ctx context.Context, seed uint64, names []string) error {
	list, err := j.drawn.play(ctx, seed, names...)
	for i, o := range list {
		j.Players[names[i]] = append(j.Players[names[i]], o)
	}
	return err
}

// loss returns the difference in success to no retries, 0 to 1, as the average of the played seeds.
func (j *judged) loss(name string) float64 {
	var sum float64
	for i, o := range j.Players[name] {
		sum += j.Players[noRetries][i].Success - o.Success
	}
	return sum / float64(len(j.Players[name]))
}

// deviation returns the standard error of the loss; NaN for one seed.
func (j *judged) deviation(name string) float64 {
	mean, n := j.loss(name), float64(len(j.Players[name]))
	var sum float64
	for i, o := range j.Players[name] {
		off := j.Players[noRetries][i].Success - o.Success - mean
		sum += off * off
	}
	return math.Sqrt(sum / (n - 1) / n)
}

// half reports whether less than half of the calls succeed that do so without retries.
func (j *judged) half(name string) bool {
	var own, none float64
	for i, o := range j.Players[name] {
		own += o.Success
		none += j.Players[noRetries][i].Success
	}
	n := float64(len(j.Players[name]))
	return none/n >= leastCalls && own < none/2
}

// never reports whether in most plays the calls do not recover, but do so without retries.
func (j *judged) never(name string) bool {
	n := 0
	for i, o := range j.Players[name] {
		if o.Never && !j.Players[noRetries][i].Never {
			n++
		}
	}
	return 2*n > len(j.Players[name])
}

// sum has a player's results in many scenarios.
type sum struct {
	Player        string
	Scenarios     int
	Over1, Over3  int // worse than no retries by more than this many points
	Over10        int
	Half, Never   int
	Gain, PerCall float64 // on average of all scenarios, under the first seed
}

// count sums up the scenarios for which keep returns true.
func count(list []*judged, name string, keep func(*judged) bool) sum {
	s := sum{Player: name}
	for _, j := range list {
		if !keep(j) {
			continue
		}
		s.Scenarios++
		loss, first := j.loss(name), j.Players[name][0]
		s.Gain += first.Success - j.Players[noRetries][0].Success
		s.PerCall += first.PerCall
		s.Over1 += one(loss > 0.01)
		s.Over3 += one(loss > 0.03)
		s.Over10 += one(loss > 0.1)
		s.Half += one(j.half(name))
		s.Never += one(j.never(name))
	}
	n := float64(max(s.Scenarios, 1))
	s.Gain /= n
	s.PerCall /= n
	return s
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
