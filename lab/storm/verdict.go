// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// judgement is whether a client reached its target.
type judgement string

const (
	pass     judgement = "PASS"
	miss     judgement = "MISS"
	void     judgement = "VOID" // its calls, or those of its reference, began too late to judge
	unjudged judgement = "–"
)

// verdict is one claim about a client, judged.
type verdict struct {
	claim     string // the target
	is        string // the result
	beside    string // the reference, if
	judgement judgement
	why       string // reason of a miss, if the figures show one
}

// judged returns pass or miss, unless the machine was too slow for one of the compared clients.
func judged(claim, is, beside string, reached bool, measured ...result) verdict {
	v := verdict{claim: claim, is: is, beside: beside, judgement: miss}
	if reached {
		v.judgement = pass
	}
	for _, r := range measured {
		if r.Late > outage.TooLate {
			v.judgement = void
		}
	}
	return v
}

// judgement returns the worst of the verdicts; a miss counts even if others could not be judged.
func (r *result) judgement() judgement {
	worst := unjudged
	for _, v := range r.verdicts {
		switch {
		case v.judgement == miss:
			return miss
		case v.judgement == void, worst == unjudged:
			worst = v.judgement
		}
	}
	return worst
}

// judge compares all clients with the storm's target, and stagger with its peers too.
func (o *outcome) judge() {
	for i := range o.results {
		if c := o.clients[i]; !c.plain() {
			o.results[i].verdicts = o.storm.targetOf(c).judge(o.results[i], o.without(c))
		}
		o.results[i].verdicts = append(o.results[i].verdicts, o.besideItself(i)...)
		if o.clients[i].ours {
			o.results[i].verdicts = append(o.results[i].verdicts, o.besidePeers(o.results[i])...)
		}
	}
}

// without returns the result of one attempt per call over as many connections as c has, if that was played: over more, the
// calls are spread over the backends less evenly.
func (o *outcome) without(c client) result {
	for i, p := range o.clients {
		if p.plain() && p.inAll() == c.inAll() {
			return o.results[i]
		}
	}
	return o.results[0]
}

// besideItself compares stagger with retries elsewhere to stagger without, with the same number of connections.
func (o *outcome) besideItself(i int) []verdict {
	c := o.clients[i]
	same := slices.IndexFunc(o.clients, func(other client) bool {
		return other.ours && other.retries == wherePicked && other.inAll() == c.inAll() && other.processes == c.processes
	})
	if !c.ours || c.retries == wherePicked || same < 0 {
		return nil
	}
	r, without := o.results[i], o.results[same]
	is, beside := percent(r), o.clients[same].name+" "+percent(without)
	if only := (target{more: true}); o.storm.targetOf(c).more {
		return []verdict{judged(only.String(), is, beside, r.Success > without.Success, r, without)}
	}
	return []verdict{judged("success no lower than that of stagger whose retries go wherever they are picked to", is, beside, !lower(r, without), r, without)}
}

// slack is how much later than a peer stagger may recover: the effect of a single failed call at the wrong moment on either.
const slack = 0.1 // seconds

// besidePeers compares stagger with those of its peers that recover, if there is something to recover from, under the same
// attempt timeouts.
func (o *outcome) besidePeers(r result) []verdict {
	success, soonest := -1, -1
	for i, c := range o.clients {
		p := o.results[i]
		if c.ours || c.retries != wherePicked || !c.onSlow.comparable(o.storm) || p.Recovery.State == sim.RecoveryNever {
			continue
		}
		if success < 0 || p.Success > o.results[success].Success {
			success = i
		}
		if p.Recovery.State == sim.RecoveryReturned && (soonest < 0 || p.Recovery.Took < o.results[soonest].Recovery.Took) {
			soonest = i
		}
	}
	var verdicts []verdict
	if success >= 0 {
		best := o.results[success]
		v := judged("success no lower than that of any peer that recovers under the same attempt timeouts",
			percent(r), o.clients[success].name+" "+percent(best),
			!lower(r, best), r, best)
		if v.judgement == miss && best.PerCall > r.PerCall {
			v.why = fmt.Sprintf("its retries, at most %.1f capacities at a time, outlast the trouble; stagger's budget ends them, at %.1f", best.Peak, r.Peak)
		}
		verdicts = append(verdicts, v)
	}
	if soonest >= 0 {
		best := o.results[soonest]
		v := judged("time to recover no longer than that of the best such peer",
			r.Recovery.String()+" s", o.clients[soonest].name+" "+best.Recovery.String()+" s",
			r.Recovery.State == sim.RecoveryReturned && r.Recovery.Took.Seconds() <= best.Recovery.Took.Seconds()+slack, r, best)
		if v.judgement == miss && lower(best, r) {
			v.why = fmt.Sprintf("it lets %.0f %% of the calls fail, stagger %.0f %%; what is not sent need not be served", 100-100*best.Success, 100-100*r.Success)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func percent(r result) string { return fmt.Sprintf("%.2f %%", 100*r.Success) }

// lower reports whether the success of a is lower than that of b by more than chance explains: two standard deviations of
// the difference of two such shares.
func lower(a, b result) bool {
	of := func(r result) float64 { return r.Success * (1 - r.Success) / float64(max(r.Calls, 1)) }
	return b.Success-a.Success > 2*math.Sqrt(of(a)+of(b))
}
