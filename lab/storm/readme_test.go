// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

const readme = "../../README.md"

// readmeClients are the rows of the README's tables: no retries, every peer, and stagger.
var readmeClients = []struct{ client, says string }{
	{noRetriesName, "no retries"},
	{"gRPC", "gRPC"},
	{"gRPC, throttling", "gRPC, throttled 10/0.1"},
	{"gRPC, throttling 100/1", "gRPC, throttled 100/1"},
	{"grpc-middleware", "go-grpc-middleware"},
	{"failsafe", "failsafe-go"},
	{"failsafe, budget", "failsafe-go, budget"},
	{"failsafe, breaker", "failsafe-go, breaker"},
	{"failsafe, hedge", "failsafe-go, hedge"},
	{"stagger", "stagger"},
}

// usualTimes are the response times of the README's storms: a median of 17 ms with a spread of σ 0.4, and for a hundredth of the requests ten
// times as long. The average is the 20 ms of the other storms, so the servers can serve as many requests.
var usualTimes = sim.Distribution{
	Shape: sim.ShapeBimodal, Usual: new(logNormal(17*ms, 43*ms)), Slow: new(logNormal(170*ms, 430*ms)), Part: 0.01,
}

// readmeStorm is a column of the README's tables.
type readmeStorm struct {
	says     string
	base     string // the storm whose services it has
	method   string
	phases   []sim.Phase
	success  bool // a column of the table of success
	requests bool // a column of the table of requests
	roomy    bool // the servers have room for all retries: stagger's must help as much as a peer's
	differs  bool // the simulator, which is a model, is further off than in other storms
}

func readmeStorms() []readmeStorm {
	const load, get, getIn200ms = 0.55, "/stagger.storm.v1.Shop/Get", "/stagger.storm.v1.Shop/GetIn200ms"
	trouble := func(length time.Duration, faults ...sim.Fault) sim.Phase {
		return sim.Phase{Name: "trouble", Length: length, Load: load, Faults: faults}
	}
	down := func(backends ...int) sim.Fault {
		return sim.Fault{Service: "shop", Backends: backends, Down: true, Code: codes.Unavailable}
	}
	restart := func(backend int) sim.Phase { return trouble(2*time.Second, down(backend)) }
	pulse := sim.Phase{Name: "trouble", Length: 2500 * ms, Load: 1.5}
	after := sim.Phase{Name: "after", Kind: sim.KindAfter, Length: 3 * time.Second, Load: load}
	return []readmeStorm{
		{
			says: "rolling restart", base: "outage", method: getIn200ms, success: true, roomy: true,
			phases: []sim.Phase{restart(0), restart(1), restart(2), restart(3)},
		},
		{
			says: "one of four fails", base: "outage", method: getIn200ms, success: true, roomy: true,
			phases: []sim.Phase{trouble(8*time.Second, down(0))},
		},
		{
			says: "one of four hangs", base: "outage", method: getIn200ms, success: true, roomy: true,
			phases: []sim.Phase{trouble(8*time.Second, sim.Fault{Service: "shop", Backends: []int{0}, Hang: true})},
		},
		{
			says: "all fail for 1 s", base: "outage", method: getIn200ms, success: true, requests: true,
			phases: []sim.Phase{trouble(time.Second, down()), after},
		},
		{
			says: "overload", base: "outage", method: getIn200ms, success: true, requests: true, differs: true,
			phases: []sim.Phase{pulse, after},
		},
		{
			says: "all fail for 10 s", base: "outage", method: getIn200ms, requests: true,
			phases: []sim.Phase{trouble(10*time.Second, down())},
		},
		{
			says: "C fails for 3 s", base: "chain-outage", method: get, requests: true,
			phases: []sim.Phase{trouble(3*time.Second, down()), after},
		},
	}
}

// storm returns the storm of a column. Its servers serve two fifths of what those of the other storms do, so that it is played sooner.
func (r readmeStorm) storm(t *testing.T) storm {
	t.Helper()
	s := load(t, r.base)
	s.Title, s.About = r.says, "with the usual response times"
	if !s.chain() {
		s.last().Workers, s.last().Queue, s.Fleets[0].Rate = 2, 150, 400
	}
	for i := range s.Services {
		s.Services[i].Time = &usualTimes
	}
	s.Fleets[0].Calls[0].Method = r.method
	s.attemptTimeout = s.Policies[s.Fleets[0].Calls[0].Policy].Lookup(r.method).PerAttemptTimeout()
	s.Phases = append(s.Phases[:1:1], r.phases...)
	return s
}

const (
	readmeSuccess  = "Calls that succeed, in %"
	readmeRequests = "Requests at the servers for each call; in the chain, at C"
)

// The README's tables have the figures of a run: stagger beside all of its peers. Runs differ by the peers' jitter, so four points of success,
// and a twentieth of the requests, may differ: in a dozen runs, it was half of that.
func TestReadmeDocsAreCurrent(t *testing.T) {
	t.Parallel()
	all := readmeStorms()
	played := make([]*outcome, len(all))
	t.Run("storms", func(t *testing.T) {
		for i, r := range all {
			t.Run(r.says, func(t *testing.T) {
				t.Parallel()
				s := r.storm(t)
				who := slices.DeleteFunc(clients(), func(c client) bool { return c.connections > 1 })
				testkit.Judge(t, func(one testing.TB) {
					played[i] = play(t, s, who)
					for k, c := range who {
						own, peer := played[i].results[1], played[i].results[k]
						if r.roomy && c.onSlow.comparable(s) && own.Success < peer.Success-0.01 {
							one.Errorf("success %s; want at most one point below the %s of %s", percent(own), percent(peer), c.name)
						}
					}
					if !r.differs {
						checkSimulator(one, played[i])
					}
					for _, table := range readmeTables([]readmeStorm{r}, played[i:i+1]) {
						off := map[string][]terminal.Off{r.says: {{Abs: 4}}}
						if table.Title == readmeRequests {
							off[r.says] = []terminal.Off{{Abs: 0.05, Rel: 0.05}}
						}
						if *write || len(table.Columns) == 1 {
							continue
						}
						for _, line := range testkit.Must(terminal.Differences(readme, "storms", []report.Table{table}, off))(t) {
							one.Errorf("%s: make storm STORM=-write writes it", line)
						}
					}
				})
			})
		}
	})
	if *write && !t.Failed() {
		testkit.NoError(t, terminal.WriteInto(readme, "storms", readmeTables(all, played)))
	}
}

// readmeTables returns both tables of the README.
func readmeTables(columns []readmeStorm, played []*outcome) []report.Table {
	success := report.Table{Title: readmeSuccess, Columns: []string{"client"}}
	requests := report.Table{Title: readmeRequests, Columns: []string{"client"}}
	for _, c := range readmeClients {
		success.Rows, requests.Rows = append(success.Rows, []string{c.says}), append(requests.Rows, []string{c.says})
	}
	for i, column := range columns {
		add := func(to *report.Table, figure func(result) string) {
			to.Columns = append(to.Columns, column.says)
			for k, c := range readmeClients {
				to.Rows[k] = append(to.Rows[k], of(played[i], figure)(c.client))
			}
			embolden(to.Rows, len(to.Columns)-1, to.Title == readmeRequests)
		}
		if column.success {
			add(&success, func(r result) string { return fmt.Sprintf("%.1f", 100*r.Success) })
		}
		if column.requests {
			add(&requests, func(r result) string { return fmt.Sprintf("%.2f", r.PerCall) })
		}
	}
	return []report.Table{success, requests}
}

// embolden makes the figures of a column bold that are better than stagger's, the last row's, by more than chance. The first row is no peer.
func embolden(rows [][]string, column int, less bool) {
	number := func(row []string) float64 {
		x, err := strconv.ParseFloat(strings.Trim(row[column], "*"), 64)
		if err != nil {
			panic(err)
		}
		return x
	}
	own := number(rows[len(rows)-1])
	for _, row := range rows[1 : len(rows)-1] {
		figure := number(row)
		row[column] = strings.Trim(row[column], "*")
		if !less && figure > own+0.95 || less && figure < own-0.015 {
			row[column] = "**" + row[column] + "**"
		}
	}
}
