// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

// after says how long a client took to recover.
func afterwards(seconds float64) recovery {
	return recovery{returned, time.Duration(seconds * float64(time.Second))}
}

// among returns stagger's result and its verdicts beside peers.
func among(s storm, ours result, peers map[slowness]result) *tally {
	t := &tally{storm: s, who: []contender{{name: "no retries"}, {name: "stagger", ours: true, connections: 1, slow: timesOut}}}
	t.results = []result{{recovery: recovery{state: never}}, ours}
	for slow, r := range peers {
		t.who = append(t.who, contender{name: "peer", slow: slow})
		t.results = append(t.results, r)
	}
	t.judge()
	return t
}

func TestStaggerIsJudgedByThePeersThatRecoverUnderTheSameTimeouts(t *testing.T) {
	t.Parallel()
	timeouts := storm{attemptTimeout: 100 * ms}
	ours := result{calls: 10_000, success: 0.9, recovery: afterwards(1)}
	better := result{calls: 10_000, success: 0.95, recovery: afterwards(1)}
	sooner := result{calls: 10_000, success: 0.5, recovery: afterwards(0.89)}
	lost := result{calls: 10_000, success: 0.95, recovery: recovery{state: never}}
	late := better
	late.late = tooLate + 1
	for name, row := range map[string]struct {
		storm storm
		ours  result
		peers map[slowness]result
		want  judgement
	}{
		"nobody else recovers":        {timeouts, ours, map[slowness]result{timesOut: lost}, unjudged},
		"a peer succeeds more often":  {timeouts, ours, map[slowness]result{timesOut: better}, miss},
		"but it does not time out":    {timeouts, ours, map[slowness]result{waits: better}, unjudged},
		"or it hedges without need":   {storm{}, ours, map[slowness]result{hedges: better}, unjudged},
		"it hedges in its place":      {timeouts, ours, map[slowness]result{hedges: better}, miss},
		"nobody times out":            {storm{}, ours, map[slowness]result{waits: better}, miss},
		"within chance":               {timeouts, ours, map[slowness]result{timesOut: {calls: 10_000, success: 0.908, recovery: afterwards(1)}}, pass},
		"beyond it":                   {timeouts, ours, map[slowness]result{timesOut: {calls: 10_000, success: 0.909, recovery: afterwards(1)}}, miss},
		"a peer recovers sooner":      {timeouts, ours, map[slowness]result{timesOut: sooner}, miss},
		"hardly sooner":               {timeouts, ours, map[slowness]result{timesOut: {calls: 10_000, success: 0.5, recovery: afterwards(0.9)}}, pass},
		"stagger never does":          {timeouts, lost, map[slowness]result{timesOut: sooner}, miss},
		"the peer's calls were late":  {timeouts, ours, map[slowness]result{timesOut: late}, void},
		"there is nothing to recover": {timeouts, result{calls: 10, success: 1}, map[slowness]result{timesOut: {calls: 10, success: 1}}, pass},
	} {
		if got := among(row.storm, row.ours, row.peers).results[1].judgement(); got != row.want {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
	}
}

func TestVerdictsCountForStaggerAndVoidIsNotReached(t *testing.T) {
	t.Parallel()
	for own, want := range map[judgement]bool{pass: true, unjudged: true, miss: false, void: false} {
		r := tally{who: []contender{{}, {ours: true}}, results: []result{{verdicts: []verdict{{judgement: miss}}}, {}}}
		if own != unjudged {
			r.results[1].verdicts = []verdict{{judgement: pass}, {judgement: own}, {judgement: pass}}
		}
		if got := r.reached(); got != want {
			t.Errorf("a peer that misses, and stagger with %s: reached %v; want %v", own, got, want)
		}
	}
}

func TestWhatPeersDoBetterIsListed(t *testing.T) {
	t.Parallel()
	ours := result{calls: 10_000, success: 0.9, recovery: afterwards(1), perCall: 1.2, p99: 300 * ms}
	got := among(storm{name: "x"}, ours, map[slowness]result{waits: {
		calls: 10_000, success: 0.95, recovery: recovery{state: never}, perCall: 1.1, p99: 200 * ms,
	}}).worse()
	var names []string
	for _, w := range got {
		names = append(names, w.figure+": "+w.is+", "+w.peers)
	}
	const want = "success: 90.0 %, peer 95.0 %; requests per call: 1.20, peer 1.10; p99: 300 ms, peer 200 ms"
	if text := strings.Join(names, "; "); text != want {
		t.Errorf("got %s; want %s", text, want)
	}
	// One that lets more calls fail is cheap; and a machine that was too slow says nothing.
	if got := among(storm{}, ours, map[slowness]result{waits: {calls: 10_000, success: 0.8, perCall: 1, recovery: afterwards(1)}}).worse(); len(got) != 0 {
		t.Errorf("%+v; want nothing beside a peer that succeeds less often", got)
	}
	if got := among(storm{}, ours, map[slowness]result{waits: {calls: 10_000, success: 1, late: tooLate + 1}}).worse(); len(got) != 0 {
		t.Errorf("%+v; want nothing beside a peer whose calls were late", got)
	}
}
