// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/lab/outage"
)

// outcome has the results of a storm: one for each client, the first without retries.
type outcome struct {
	storm   storm
	clients []client
	results []result

	simulated []sim.Played // as checkSimulator played it
}

// result has the measurements and verdicts of a client in a storm.
type result struct {
	outage.Result

	verdicts []verdict
}

// verdict is one claim about a client, judged.
type verdict struct {
	claim  string // the target
	is     string // the result
	beside string // the reference, if any
	ok     bool
	why    string // reason of a miss, if the figures show one
}

// judgement is PASS if the client reached all its targets, else MISS; a dash without any.
func (r *result) judgement() string {
	switch {
	case len(r.verdicts) == 0:
		return "–"
	case slices.ContainsFunc(r.verdicts, func(v verdict) bool { return !v.ok }):
		return "MISS"
	default:
		return "PASS"
	}
}

// table returns the figures of a storm, a row for each client.
func (o *outcome) table() report.Table {
	list := report.Table{Title: o.storm.Title + ": " + o.storm.About, Columns: slices.Concat([]string{"client"}, outage.Columns, []string{"judged"})}
	for i, c := range o.clients {
		list.Rows = append(list.Rows, append(o.results[i].Row(c.name), o.results[i].judgement()))
	}
	return list
}

// target is stagger's target in a storm. Fields that are zero set no target.
type target struct {
	success  float64 // at least, 0 to 1
	perCall  float64 // requests for each call, at most
	recovery float64 // at most, in multiples of the time of the client without retries
	share    float64 // of the success of the client without retries, at least

	p99, p999 time.Duration // at most
	more      bool          // more success than stagger with retries wherever they are picked
}

// judge compares r with the target, and with the client without retries in the same storm.
func (t target) judge(r, without result) (list []verdict) {
	part := func(set bool, claim string, most any, is, beside string, ok bool) {
		if set {
			list = append(list, verdict{claim: fmt.Sprintf("%s %v", claim, most), is: is, beside: beside, ok: ok})
		}
	}
	part(t.success > 0, "success at least", t.success, percent(r), "", r.Success >= t.success)
	part(t.perCall > 0, "requests per call at most", t.perCall, fmt.Sprintf("%.3f", r.PerCall), "", r.PerCall <= t.perCall)
	part(t.recovery > 0, "time to recover, in times that without retries, at most", t.recovery, r.Recovery.String()+" s",
		without.Recovery.String()+" s", within(t.recovery, r.Recovery, without.Recovery))
	part(t.p99 > 0, "p99 at most", t.p99, r.P99.String(), "", r.P99 <= t.p99)
	part(t.p999 > 0, "p999 at most", t.p999, r.P999.String(), "", r.P999 <= t.p999)
	part(t.share > 0, "success, in times that without retries, at least", t.share, percent(r), percent(without), r.Success >= t.share*without.Success)
	return list
}

// within reports whether r took at most times as long as other. A client that never recovers can only be compared with
// another such.
func within(times float64, r, other sim.Recovered) bool {
	if r.State != sim.RecoveryReturned {
		return r.State == other.State
	}
	return other.State != sim.RecoveryReturned || r.Took.Seconds() <= times*other.Took.Seconds()
}

// judge compares all clients with the storm's target, and stagger with its peers too.
func (o *outcome) judge() {
	for i, c := range o.clients {
		r := &o.results[i]
		if !c.plain() {
			r.verdicts = o.storm.targetOf(c).judge(*r, o.without(c))
		}
		if c.ours {
			r.verdicts = append(append(r.verdicts, o.besideItself(i)...), o.besidePeers(*r)...)
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
	if c.retries == wherePicked || same < 0 {
		return nil
	}
	r, without := o.results[i], o.results[same]
	v := verdict{claim: "success no lower than with retries that go wherever they are picked to", is: percent(r), beside: percent(without)}
	v.ok = !lower(r, without)
	if o.storm.targetOf(c).more {
		v.claim, v.ok = "success higher than with such retries", r.Success > without.Success
	}
	return []verdict{v}
}

// slack is how much later than a peer stagger may recover: the effect of a single failed call at the wrong moment on either.
const slack = 0.1 // seconds

// besidePeers compares stagger with those of its peers that recover, if there is something to recover from, under the same
// attempt timeouts.
func (o *outcome) besidePeers(r result) (verdicts []verdict) {
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
	if success >= 0 {
		best := o.results[success]
		v := verdict{claim: "success no lower than that of any peer", is: percent(r), beside: o.clients[success].name + " " + percent(best), ok: !lower(r, best)}
		if best.PerCall > r.PerCall {
			v.why = "stagger's budget ends its retries before"
		}
		verdicts = append(verdicts, v)
	}
	if soonest >= 0 {
		best := o.results[soonest]
		v := verdict{
			claim: "time to recover no longer than that of any peer", is: r.Recovery.String() + " s", beside: o.clients[soonest].name + " " + best.Recovery.String() + " s",
			ok: r.Recovery.State == sim.RecoveryReturned && r.Recovery.Took.Seconds() <= best.Recovery.Took.Seconds()+slack,
		}
		if lower(best, r) {
			v.why = "the peer lets more calls fail"
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// lower reports whether a's success is lower than b's by more than two standard deviations of their difference.
func lower(a, b result) bool {
	of := func(r result) float64 { return r.Success * (1 - r.Success) / float64(max(r.Calls, 1)) }
	return b.Success-a.Success > 2*math.Sqrt(of(a)+of(b))
}

func percent(r result) string { return fmt.Sprintf("%.2f %%", 100*r.Success) }

// behind is a figure in which peers are better than stagger.
type behind struct {
	figure, own string
	peers       []string // each with its figure
}

// worse returns the figures in which stagger from one connection is worse than a peer by more than chance and rounding, whatever that
// times out: requests, peaks and latency only compared with clients whose success is not lower.
func (o *outcome) worse() (list []behind) {
	ours := slices.IndexFunc(o.clients, func(c client) bool { return c.ours })
	a := o.results[ours]
	took := func(of func(result) time.Duration) func(result) (bool, string) {
		return func(b result) (bool, string) {
			return float64(of(b)) < 0.9*float64(of(a)) && of(a)-of(b) > 5*time.Millisecond, fmt.Sprintf("%d ms", of(b).Milliseconds())
		}
	}
	for _, f := range []struct {
		name   string
		equals bool
		better func(b result) (is bool, figure string)
	}{
		{"success", false, func(b result) (bool, string) { return lower(a, b), percent(b) }},
		{"time to recover", false, func(b result) (bool, string) {
			return b.Recovery.State == sim.RecoveryReturned && !within(1, a.Recovery, sim.Recovered{State: b.Recovery.State, Took: b.Recovery.Took + time.Second/10}), b.Recovery.String()
		}},
		{"requests per call", true, func(b result) (bool, string) { return b.PerCall < a.PerCall-0.02, fmt.Sprintf("%.2f", b.PerCall) }},
		{"peak arrivals", true, func(b result) (bool, string) { return b.Peak < 0.8*a.Peak, fmt.Sprintf("%.1f", b.Peak) }},
		{"p50", true, took(func(r result) time.Duration { return r.P50 })},
		{"p99", true, took(func(r result) time.Duration { return r.P99 })},
		{"p999", true, took(func(r result) time.Duration { return r.P999 })},
	} {
		var peers []string
		for i, c := range o.clients {
			if c.ours || c.retries != wherePicked || f.equals && lower(o.results[i], a) {
				continue
			}
			if is, figure := f.better(o.results[i]); is {
				peers = append(peers, c.name+" "+figure)
			}
		}
		if len(peers) > 0 {
			_, own := f.better(a)
			list = append(list, behind{f.name, own, peers})
		}
	}
	return list
}
