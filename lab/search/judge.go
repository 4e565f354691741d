// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/stagger-go/stagger/internal/sim"
)

// set is a set of scenarios, and the question to them. The first sets ask how often retries are worse than none, the others how much of
// what retries could do is not done.
type set string

// The sets.
const (
	harm    set = "harm"
	harmOld set = "harm, old"  // the processes have lived for long before the trouble
	loops   set = "harm, loop" // an overload feeds itself
	help    set = "help"
	helpOld set = "help, old" // likewise
)

// helps reports whether the set's question is lost help.
func (s set) helps() bool { return s == help || s == helpOld }

// old reports whether all processes have lived for long.
func (s set) old() bool { return s == harmOld || s == helpOld }

// Limits of judging harm. The first play shows where to look. Only the later ones prove that a player is worse, since a play that was
// chosen for its result is no sample.
const (
	laterPlays   = 4
	suspicious   = 0.01 // if the first play is worse than no retries by more, the others follow
	leastSuccess = 0.02 // half of this success without retries can be lost
)

// helpPlays is the number of plays of each scenario with lost help.
const helpPlays = 2

// helpers are the players whose best is what retries could do.
var helpers = []string{noRetries, grpcPlain, grpcThrottled, unbound}

// outcome has the results of a scenario's calls with a player, in the trouble and after it.
type outcome struct {
	Success float64 `json:"success"`         // 0 to 1
	Never   bool    `json:"never,omitempty"` // the calls have not recovered
	PerCall float64 `json:"requestsPerCall"` // requests at the last service
}

// judged has the outcomes of a scenario with all its players.
type judged struct {
	Set     set                  `json:"set"`
	Seed    uint64               `json:"seed"`
	Index   int                  `json:"index"`
	Kind    string               `json:"kind"`
	About   string               `json:"about"`
	Players map[string][]outcome `json:"players"` // by play; no retries has at least as many as any other
}

// play plays the scenario with these players for the n-th time: the same calls at the same times.
func (s *scenario) play(ctx context.Context, n int, names []string) ([]outcome, error) {
	of := *s.Scenario
	of.Variants = slices.DeleteFunc(slices.Clone(s.Variants), func(v sim.Variant) bool { return !slices.Contains(names, v.Name) })
	r, err := of.Run(ctx, sim.Options{Seed: s.seedOf(n), Parallel: 1})
	if err != nil {
		return nil, err
	}
	var list []outcome
	for _, run := range r.Runs {
		var o outcome
		var succeeded, calls float64
		for _, f := range run.Fleets {
			calls += float64(f.Calls)
			succeeded += f.Success * float64(f.Calls)
			o.Never = o.Never || f.Recovery.State == sim.RecoveryNever
		}
		o.Success, o.PerCall = succeeded/max(calls, 1), run.Services[len(run.Services)-1].PerCall
		list = append(list, o)
	}
	return list, nil
}

// seedOf returns the seed of the scenario's n-th play. The first is the file's own, and all differ from other scenarios'.
func (s *scenario) seedOf(n int) uint64 {
	if n == 0 {
		return s.Seed
	}
	return playSeed(rand.New(rand.NewPCG(s.Seed, uint64(n))))
}

// playSeed draws a seed as scenario files have it.
func playSeed(from *rand.Rand) uint64 { return 1 + from.Uint64N(1<<31-1) }

// judge plays a scenario with each of these players. The first must be no retries.
func (s *scenario) judge(ctx context.Context, names []string) (*judged, error) {
	j := &judged{
		Set: s.set, Seed: s.seed, Index: s.index, Kind: s.kind, About: s.About, Players: map[string][]outcome{},
	}
	plays := helpPlays
	if !s.set.helps() {
		plays = 1 + laterPlays
	}
	for n := range plays {
		list, err := s.play(ctx, n, names)
		if err != nil {
			return nil, err
		}
		for i, o := range list {
			j.Players[names[i]] = append(j.Players[names[i]], o)
		}
		if n > 0 || s.set.helps() {
			continue
		}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return name != noRetries && !compare(j.Players[name], j.Players[noRetries]).suspicious()
		})
		if len(names) == 1 {
			break
		}
	}
	return j, nil
}

// verdict compares a player with no retries in some plays.
type verdict struct {
	loss        float64 // of success, on average, 0 to 1
	half, never bool    // less than half of the calls succeed that do so without retries; in most plays they do not recover, but do so without
}

func compare(own, none []outcome) (v verdict) {
	var success, reference, stuck, n float64
	for i, o := range own {
		n, success, reference = n+1, success+o.Success, reference+none[i].Success
		if o.Never && !none[i].Never {
			stuck++
		}
	}
	return verdict{(reference - success) / max(n, 1), n > 0 && reference >= n*leastSuccess && success < reference/2, stuck > n/2}
}

func (v verdict) suspicious() bool { return v.loss > suspicious || v.half || v.never }

// verdict returns how much worse a player is than no retries. Without later plays it is not.
func (j *judged) verdict(name string) verdict {
	return compare(j.Players[name][1:], j.Players[noRetries][1:])
}

// lost returns how much help a player loses: how much more calls succeed with the best helper, 0 to 1.
func (j *judged) lost(name string) float64 {
	own := mean(j.Players[name])
	best := own
	for _, h := range helpers {
		best = max(best, mean(j.Players[h]))
	}
	return best - own
}

// loss returns by which number a set judges a player.
func (j *judged) loss(name string) float64 {
	if j.Set.helps() {
		return j.lost(name)
	}
	return j.verdict(name).loss
}

// mean returns the mean success.
func mean(list []outcome) (sum float64) {
	for _, o := range list {
		sum += o.Success / float64(len(list))
	}
	return sum
}

// search draws and judges n scenarios of each seed. Progress is called with the part that is done.
func search(ctx context.Context, of set, from []uint64, n int, names []string, progress func(part float64)) ([]*judged, error) {
	var (
		list  = make([]*judged, n*len(from))
		errs  = make([]error, len(list))
		slots = make(chan struct{}, runtime.GOMAXPROCS(0))
		all   sync.WaitGroup
		mu    sync.Mutex
		done  int
	)
	names = playersOf(of, names)
	for i := range list {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			seed, index := from[i/n], i%n
			s, err := draw(ctx, newChance(of, seed, index, nil), names)
			if err == nil {
				list[i], err = s.judge(ctx, names)
			}
			if err != nil {
				errs[i] = fmt.Errorf("%v: scenario %d of seed %d: %w", of, index, seed, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(float64(done) / float64(len(list)))
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// harmSum has a player's results in many scenarios of harm.
type harmSum struct {
	over          [3]uint64 // worse than no retries by more than 1, 3 and 10 points
	half, never   uint64
	gain, perCall float64
}

// ofKind returns the scenarios of a kind; of all kinds for "".
func ofKind(list []*judged, kind string) (of []*judged) {
	for _, j := range list {
		if kind == "" || j.Kind == kind {
			of = append(of, j)
		}
	}
	return of
}

func sumHarm(list []*judged, name string) (s harmSum) {
	for _, j := range list {
		v := j.verdict(name)
		for i, limit := range []float64{0.01, 0.03, 0.1} {
			if v.loss > limit {
				s.over[i]++
			}
		}
		if v.half {
			s.half++
		}
		if v.never {
			s.never++
		}
		first, n := j.Players[name][0], float64(len(list))
		s.gain += (first.Success - j.Players[noRetries][0].Success) / n
		s.perCall += first.PerCall / n
	}
	return s
}

// helpSum has a player's results in many scenarios of lost help: parts of the scenarios, and means.
type helpSum struct {
	over          [4]float64 // lost more than 1, 3, 10 and 30 points
	mean, perCall float64
}

func sumHelp(list []*judged, name string) (s helpSum) {
	for _, j := range list {
		n, lost := float64(len(list)), j.lost(name)
		for i, limit := range []float64{0.01, 0.03, 0.1, 0.3} {
			if lost > limit {
				s.over[i] += 1 / n
			}
		}
		s.mean += lost / n
		for _, o := range j.Players[name] {
			s.perCall += o.PerCall / n / float64(len(j.Players[name]))
		}
	}
	return s
}
