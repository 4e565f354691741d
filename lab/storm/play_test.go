// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Under the race detector a storm takes fifteen times as long, and shows nothing more.

package storm

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/lab/outage"
)

var (
	every    = flag.Bool("all", false, "play the storms over every client")
	pattern  = flag.String("storms", "", "play the storms whose titles match this `regexp`; all without it")
	grid     = flag.String("grid", "", "play the storms of the grid whose titles match this `regexp`, over all clients; without it, a small part")
	markdown = flag.Bool("markdown", false, "show the tables in Markdown")
	write    = flag.Bool("write", false, "write the tables of all storms and clients into the pages (with -all, or -grid .)")
)

// play plays a storm for some clients in parallel, and judges them. Calls come at the same times in every run.
func play(t *testing.T, s storm, who []client) *outcome {
	t.Helper()
	o := &outcome{storm: s, clients: who}
	synctest.Test(t, func(t *testing.T) {
		group := outage.Outage{Scenario: s.Scenario, Calls: outage.Arrivals(s.Scenario, 1)}
		for _, c := range who {
			group.Clients = append(group.Clients, c.in(s))
		}
		records := testkit.Must(group.Play(t.Context()))(t)
		for i := range records {
			o.results = append(o.results, result{Result: records[i].Measure()})
		}
	})
	o.judge()
	if *markdown {
		t.Logf("\n%s\n", terminal.Markdown(o.table()))
	} else {
		t.Logf("\n%s\n", terminal.Table(o.table(), terminal.Style{}, ""))
	}
	return o
}

// named returns the clients with these names, after the first, which does not retry.
func named(all []client, names ...string) []client {
	return slices.DeleteFunc(slices.Clone(all), func(c client) bool { return c.name != noRetriesName && !slices.Contains(names, c.name) })
}

// misses are the known misses in comparisons with peers: a part of each claim, and of why. Unlimited retries outlast an
// outage of 3 s, and a breaker that refuses half of all calls leaves an overload sooner.
var misses = map[string][2]string{
	"chain outage": {"success no lower", "stagger's budget ends"},
	"chain pulse":  {"time to recover no longer", "the peer lets more calls fail"},
	"pulse":        {"time to recover no longer", "the peer lets more calls fail"}, // depends on where its breaker is
}

// checkClaims fails the test for every claim about stagger that does not hold, except known ones, and a p999 that is up to a quarter too
// long: it is that of the fifth slowest call, which waits in a queue, and differs between runs.
func checkClaims(t testing.TB, o *outcome) {
	t.Helper()
	known, ok := misses[o.storm.Title]
	for i, c := range o.clients {
		r := o.results[i]
		for _, v := range r.verdicts {
			excused := ok && strings.HasPrefix(v.claim, known[0]) && strings.Contains(v.why, known[1]) ||
				strings.HasPrefix(v.claim, "p999 ") && r.P999 <= o.storm.targetOf(c).p999*5/4
			if c.ours && !v.ok && !excused {
				t.Errorf("%s: %s: %s, %s (%s)", c.name, v.claim, v.is, v.beside, v.why)
			}
		}
	}
}

// checkSimulator compares a storm over real gRPC with the simulator's.
func checkSimulator(t testing.TB, o *outcome) {
	t.Helper()
	o.simulated = testkit.Must(o.storm.Run(t.Context(), sim.Options{}))(t).Runs
	compared := 0
	for _, run := range o.simulated {
		i := slices.IndexFunc(o.clients, func(c client) bool { return c.name == run.Name })
		if i < 0 {
			continue
		}
		off := 0.03 // of all calls
		if o.clients[i].processes >= 100 && strings.HasPrefix(run.Name, admission) {
			off = 0.06 // a hundred gates learn from few answers each: runs over gRPC differ by two points
		}
		more := 0.05 // of the requests
		if o.storm.Title == "chain outage" {
			off, more = 0.06, 0.1 // calls return by the time that answers take, which the simulator's network makes shorter
		}
		if o.storm.Title == "half the workers" {
			more = 0.2 // the load is just above what is left, and nine runs over gRPC have 1.05 to 1.23 requests a call
		}
		compared++
		success, perCall, played := run.Fleets[0].Success, run.Services[len(run.Services)-1].PerCall, o.results[i]
		if math.Abs(success-played.Success) > off || math.Abs(perCall-played.PerCall) > more*played.PerCall {
			t.Errorf("%s: %.2f %% succeed in the simulator with %.3f requests a call; over gRPC %s with %.3f; want within %v points and %v %%", run.Name,
				100*success, perCall, percent(played), played.PerCall, 100*off, 100*more)
		}
	}
	if compared < 2 {
		t.Errorf("%d clients are called as the simulator's variants; want no retries and stagger at least", compared)
	}
}

// Stagger must reach its targets with any number of connections, and its claims about peers. Of peers with the same behaviour, one is
// played, with -all every one.
//
//	make storm
func TestStaggerBesideItsPeers(t *testing.T) {
	t.Parallel()
	list := storms(t, withPeers, *pattern)
	outcomes := make([]*outcome, len(list))
	writeAll(t, *every && *pattern == "", func() { writePages(t, outcomes) })
	for i, s := range list {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			who := slices.DeleteFunc(clients(), func(c client) bool {
				alike := slices.Contains([]string{"failsafe", "failsafe, budget", "gRPC, throttling", "gRPC, throttling 100/1"}, c.name)
				return !*every && !c.plain() && (alike || !c.onSlow.comparable(s))
			})
			testkit.Judge(t, func(one testing.TB) {
				outcomes[i] = play(t, s, who)
				checkClaims(one, outcomes[i])
				checkSimulator(one, outcomes[i])
				stormAgrees(one, "storms", outcomes[i])
			})
			for _, w := range outcomes[i].worse() {
				t.Logf("worse than a peer: %s %s: %s", w.figure, w.own, strings.Join(w.peers, ", "))
			}
		})
	}
}

// The benefit of retries at another backend, from any number of connections.
func TestRetryElsewhereBesideItsPeers(t *testing.T) {
	t.Parallel()
	list := elsewhereStorms(t)
	outcomes := make([]*outcome, len(list))
	writeAll(t, true, func() { put(t, results, "elsewhere", sections(outcomes)...) })
	for i, s := range list {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			testkit.Judge(t, func(one testing.TB) {
				outcomes[i] = play(t, s, elsewhereClients())
				checkClaims(one, outcomes[i])
				stormAgrees(one, "elsewhere", outcomes[i])
			})
		})
	}
}

// In the other storms, retries at another backend make nothing worse. Chains take the most time.
func TestRetryElsewhereInOtherStorms(t *testing.T) {
	t.Parallel()
	for _, s := range storms(t, withPeers, *pattern) {
		if strings.HasPrefix(s.Title, "one ") || s.chain() && !*every {
			continue
		}
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			who := elsewhereClients()[:7] // no retries, and stagger without and with
			testkit.Judge(t, func(one testing.TB) {
				o := play(t, s, who)
				for i := 1; i <= 3; i++ {
					without, with := o.results[i], o.results[i+3]
					later := with.Recovery.Took.Seconds() > without.Recovery.Took.Seconds()+slack || with.Recovery.State != without.Recovery.State
					if lower(with, without) || later || with.PerCall > without.PerCall*1.02 {
						one.Errorf("%s: success %s, recovered in %s s, %.2f requests per call; want it no worse than %s, %s s, %.2f", who[i+3].name,
							percent(with), with.Recovery, with.PerCall, percent(without), without.Recovery, without.PerCall)
					}
				}
			})
		})
	}
}

// Clients with known behaviour show whether the storms are effective.
func TestStormsBite(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ success, perCall, peer float64 }{ // without retries, without, of the peer
		"one fails": {0.75, 1, 1.33},
		"one hangs": {0.75, 1, 1.32},
		"outage":    {0, 1, 4}, // the fifth would come after the deadline
		"pulse":     {0.74, 1, 3.41},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Judge(t, func(one testing.TB) {
				r := play(t, storms(t, withPeers, "^"+name+"$")[0], named(clients(), "grpc-middleware"))
				none, peer := r.results[0], r.results[1]
				if math.Abs(none.Success-want.success) > 0.02 || math.Abs(none.PerCall-want.perCall) > 0.001 || math.Abs(peer.PerCall-want.peer) > 0.05 {
					one.Errorf("success %s, requests per call %.3f, with a peer's retries %.3f; want %+v", percent(none), none.PerCall, peer.PerCall, want)
				}
				if name == "pulse" && (peer.Recovery.State != sim.RecoveryNever || none.Recovery.State != sim.RecoveryReturned) {
					one.Errorf("without a budget it recovers after %v, without retries %v; want never, and soon", peer.Recovery, none.Recovery)
				}
			})
		})
	}
}

// Five attempts per hop make 125 requests at the last service for one call, unless the hop nearest to the trouble reports
// that it has given up.
func TestChainOfRetries(t *testing.T) {
	t.Parallel()
	s := load(t, "chain-outage")
	s.Fleets[0].Calls[0].Deadline = time.Minute
	s.Phases = []sim.Phase{{Length: time.Second, Faults: []sim.Fault{{Service: s.last().Name, Down: true, Code: codes.Unavailable}}}}
	for name, want := range map[string][]int{
		"no retries":      {1, 1, 1},
		"grpc-middleware": {5, 25, 125},
		"gRPC":            {5, 25, 125},
		"stagger":         {1, 1, 1 + min(4, int(budget.Default().Size))}, // one layer retries, while its bucket pays
	} {
		synctest.Test(t, func(t *testing.T) {
			all := named(clients(), name)
			o := outage.Outage{
				Scenario: s.Scenario, Calls: []outage.Call{{Method: s.Fleets[0].Calls[0].Method}}, Clients: []outage.Client{all[len(all)-1].in(s)},
			}
			records := testkit.Must(o.Play(t.Context()))(t)
			var requests []int
			for _, list := range records[0].Requests {
				requests = append(requests, len(list))
			}
			if !slices.Equal(requests, want) || records[0].Calls[0].OK {
				t.Errorf("%s: %v requests, %+v; want %v, and a failure", name, requests, records[0].Calls[0], want)
			}
		})
	}
}

// The grid: every storm from 1, 10 and 100 connections of one process, and from 10 and 100 processes, each compared with no
// retries over as many connections. Every configuration must reach stagger's targets.
//
//	make grid
func TestGrid(t *testing.T) {
	t.Parallel()
	list := storms(t, inGrid, cmp.Or(*grid, "^(outage|all slow)$"))
	outcomes := make([]*outcome, len(list))
	writeAll(t, *grid == ".", func() { writeGrid(t, outcomes) })
	for i, s := range list {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			testkit.Judge(t, func(one testing.TB) {
				outcomes[i] = play(t, s, gridClients())
				checkTargets(one, outcomes[i])
				checkSimulator(one, outcomes[i])
				gridAgrees(one, outcomes[i])
			})
		})
	}
}

// Hundreds of small processes know little of the servers, and each has a bucket of its own. So attempts after timeouts and hedges of
// all fill a queue that is short without them, until each has spent its bucket. That is the price of buckets that are full at first, and of
// attempts beside slow ones after five answers: with less, a quiet client of healthy servers is not helped
// (docs/evidence/storms.md). The bounds are what it costs here, and some points of chance.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	text := string(testkit.Must(os.ReadFile(page))(t))
	for name, row := range map[string]struct {
		says       string // the page, with the bound
		method     string
		processes  int
		load, most float64
		faults     []sim.Fault
	}{
		"timeouts and no fault": {"300 processes with attempt timeouts of 100 ms, at the capacity", "GetIn100ms", 300, 1, 0.1, nil},
		"hedges while one is down": {
			"212 processes that hedge after 80 ms, at 85 % of the capacity, while one backend of four is down", "GetHedgedSoon", 212, 0.85, 0.27,
			[]sim.Fault{{Service: "shop", Backends: []int{0}, Down: true, Code: codes.Unavailable}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if want := fmt.Sprintf("- %s: at most %.0f points.\n", row.says, 100*row.most); !strings.Contains(text, want) {
				t.Errorf("docs/evidence/storms.md does not say %q", want)
			}
			s := load(t, "hedged-85")
			s.Fleets[0].Calls[0].Method = "/stagger.storm.v1.Shop/" + row.method
			for i := range s.Phases {
				s.Phases[i].Load, s.Phases[i].Length = row.load, min(s.Phases[i].Length, 10*time.Second)
			}
			s.Phases[1].Faults = row.faults
			who := []client{{name: noRetriesName, options: noRetries}, ours("stagger", wherePicked)[0]}
			for i := range who {
				who[i].processes = row.processes
			}
			testkit.Judge(t, func(one testing.TB) {
				o := play(t, s, who)
				if none, own := o.results[0].Success, o.results[1].Success; own < none-row.most {
					one.Errorf("success %.4f; want at most %v below the %.4f without retries", own, row.most, none)
				}
			})
		})
	}
}

// checkTargets fails the test for every target that stagger misses by more than chance explains. With many connections, simultaneous
// calls come in an order that depends on the scheduler: two standard deviations of the success are allowed and, in the recovery, the
// effect of one call on either.
func checkTargets(t testing.TB, o *outcome) {
	t.Helper()
	for i, c := range o.clients {
		if !c.ours {
			continue
		}
		r, without, most := o.results[i], o.without(c), o.storm.targetOf(c)
		if o.storm.below > 0 && r.Success < without.Success-o.storm.below {
			t.Errorf("%s: success %s; want at most %v below the %s without retries", c.name, percent(r), o.storm.below, percent(without))
		}
		deviations := func(success float64) float64 { return 2 * math.Sqrt(success*(1-success)/float64(max(r.Calls, 1))) }
		if most.success > 0 {
			most.success -= deviations(most.success)
		}
		if most.share > 0 && without.Success > 0 {
			most.share -= deviations(without.Success) / without.Success
		}
		if took := without.Recovery.Took.Seconds(); most.recovery > 0 && took > 0 {
			most.recovery += slack / took
		}
		for _, v := range most.judge(r, without) {
			if !v.ok {
				t.Errorf("%s: %s: %s, %s", c.name, v.claim, v.is, v.beside)
			}
		}
	}
}

// Admission, from one connection and from many connections and processes, compared with no retries, stagger without it, and
// failsafe-go's adaptive limiter and throttler. Without an overload, it refuses hardly a call; in short overloads that calls would
// survive without it, it may cost 3 points.
//
//	make grid
func TestAdmission(t *testing.T) {
	t.Parallel()
	list := storms(t, withAdmission, cmp.Or(*grid, "^(pulse|all slow)$"))
	outcomes := make([]*outcome, len(list))
	writeAll(t, *grid == ".", func() { writeAdmission(t, outcomes) })
	for i, s := range list {
		t.Run(s.Title, func(t *testing.T) {
			t.Parallel()
			s.Scenario = simulateAdmission(t, s.Scenario)
			testkit.Judge(t, func(one testing.TB) {
				who, refused := admissionClients()
				if *grid == "" {
					who = named(who, "stagger", "stagger, 100 processes", admission, admission+", 100 processes")
				}
				o := play(t, s, who)
				outcomes[i] = o
				checkTargets(one, o)
				checkSimulator(one, o)
				admissionAgrees(one, o)
				for k, c := range o.clients {
					if c.ours {
						checkRefusals(one, o, k, float64(refused[c.name].Load())/float64(o.results[k].Calls))
					}
				}
			})
		})
	}
}

// checkRefusals checks what admission costs a client: a part of the calls that it refuses, and success.
func checkRefusals(t testing.TB, o *outcome, k int, part float64) {
	t.Helper()
	c, without := o.clients[k], o.results[1]
	t.Logf("%s: %.2f %% of the calls are refused", c.name, 100*part)
	if o.storm.calm && part > 0.0005 {
		t.Errorf("%s: %.2f %% of the calls are refused without an overload", c.name, 100*part)
	}
	if c.processes >= 100 {
		without = o.results[2]
	}
	if o.results[k].Success < without.Success-0.03 {
		t.Errorf("%s: success %s; want at most 3 points below the %s without admission", c.name, percent(o.results[k]), percent(without))
	}
}

// simulateAdmission adds variants to a scenario.
func simulateAdmission(t *testing.T, s *sim.Scenario) *sim.Scenario {
	t.Helper()
	s = testkit.Must(s.With(admission, testkit.Must(policiesOf(storm{}, wherePicked, admission))(t), ""))(t)
	last := s.Variants[len(s.Variants)-1]
	most := []int{10, 100}
	if s.Title == "strong pulse" {
		most = most[:1] // from a hundred processes, chance decides which of them learn in time
	}
	for _, processes := range most {
		more := last
		more.Name, more.Clients = fmt.Sprintf("%s, %d processes", admission, processes), processes
		s.Variants = append(s.Variants, more)
	}
	return s
}
