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

// readmeClients are the rows of the tables in docs/evidence/storms.md: no retries, every peer, and stagger. The README has fewer.
var readmeClients = []struct {
	client, says string
	readme       bool // a row of the README's table
}{
	{noRetriesName, "no retries", false},
	{"gRPC", "gRPC", true},
	{"gRPC, throttling", "gRPC, throttled 10/0.1", true},
	{"gRPC, throttling 100/1", "gRPC, throttled 100/1", false},
	{"grpc-middleware", "go-grpc-middleware", true},
	{"failsafe", "failsafe-go", true},
	{"failsafe, budget", "failsafe-go, budget", false},
	{"failsafe, breaker", "failsafe-go, breaker", false},
	{"failsafe, hedge", "failsafe-go, hedge", false},
	{"stagger", "stagger", true},
}

// usualTimes are the response times of the README's storms: a median of 17 ms with a spread of σ 0.4, and for a hundredth of the requests ten
// times as long. The average is the 20 ms of the other storms, so the servers can serve as many requests.
var usualTimes = sim.Distribution{
	Shape: sim.ShapeBimodal, Usual: new(logNormal(17*ms, 43*ms)), Slow: new(logNormal(170*ms, 430*ms)), Part: 0.01,
}

// readmeStorm is a column of the README's table, or of those in docs/evidence/storms.md.
type readmeStorm struct {
	says     string
	base     string // the storm whose services it has
	method   string
	deadline time.Duration // of each call; 0: the storm's
	phases   []sim.Phase
	readme   bool // a column of the README's table
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
	longAfter := sim.Phase{Name: "after", Kind: sim.KindAfter, Length: 6 * time.Second, Load: load}
	return []readmeStorm{
		{
			says: "rolling restart", base: "outage", method: getIn200ms, success: true, roomy: true,
			phases: []sim.Phase{restart(0), restart(1), restart(2), restart(3)},
		},
		{
			says: "one of four fails", base: "outage", method: getIn200ms, readme: true, success: true, roomy: true,
			phases: []sim.Phase{trouble(8*time.Second, down(0))},
		},
		{
			says: "one of four hangs", base: "outage", method: getIn200ms, readme: true, success: true, roomy: true,
			phases: []sim.Phase{trouble(8*time.Second, sim.Fault{Service: "shop", Backends: []int{0}, Hang: true})},
		},
		{
			says: "all fail for 1 s", base: "outage", method: getIn200ms, readme: true, success: true, requests: true,
			phases: []sim.Phase{trouble(time.Second, down()), after},
		},
		{
			says: "all fail for 3 s", base: "outage", method: getIn200ms, deadline: 5 * time.Second, readme: true, success: true, requests: true,
			phases: []sim.Phase{trouble(3*time.Second, down()), longAfter},
		},
		{
			says: "overload", base: "outage", method: getIn200ms, readme: true, success: true, requests: true, differs: true,
			phases: []sim.Phase{pulse, after},
		},
		{
			says: "all fail for 10 s", base: "outage", method: getIn200ms, requests: true,
			phases: []sim.Phase{trouble(10*time.Second, down())},
		},
		{
			says: "C fails for 3 s", base: "chain-outage", method: get, requests: true, differs: true,
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
	if r.deadline > 0 {
		s.Fleets[0].Calls[0].Deadline = r.deadline
	}
	s.attemptTimeout = s.Policies[s.Fleets[0].Calls[0].Policy].Lookup(r.method).PerAttemptTimeout()
	s.Phases = append(s.Phases[:1:1], r.phases...)
	return s
}

const (
	readmeBoth     = "Success in %, and requests at the servers for each call"
	readmeSuccess  = "Calls that succeed, in %"
	readmeRequests = "Requests at the servers for each call; in the chain, at C"
)

// The README's table, and both of docs/evidence/storms.md, have the figures of a run: stagger beside all of its peers. Runs differ by the peers' jitter, so four points of success,
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
					points, perCall := terminal.Off{Abs: 4}, terminal.Off{Abs: 0.05, Rel: 0.05}
					column, outcomes := []readmeStorm{r}, played[i:i+1]
					tables := readmeTables(column, outcomes)
					agrees(one, page, clientsMark, map[string][]terminal.Off{r.says: {points}}, withColumns(tables[0])...)
					agrees(one, page, clientsMark, map[string][]terminal.Off{r.says: {perCall}}, withColumns(tables[1])...)
					agrees(one, readme, "storms", map[string][]terminal.Off{r.says: {points, perCall}}, withColumns(readmeTable(column, outcomes))...)
				})
			})
		}
	})
	if *write && !t.Failed() {
		put(t, readme, "storms", readmeTable(all, played))
		put(t, page, clientsMark, readmeTables(all, played)...)
	}
}

// clientsMark is around the tables of all clients in docs/evidence/storms.md.
const clientsMark = "all clients"

// withColumns returns the table, or none if its rows have names only.
func withColumns(table report.Table) []report.Table {
	if len(table.Columns) == 1 {
		return nil
	}
	return []report.Table{table}
}

// readmeTable returns the README's table.
func readmeTable(columns []readmeStorm, played []*outcome) report.Table {
	both := report.Table{Title: readmeBoth, Columns: []string{"client"}}
	for _, c := range readmeClients {
		if c.readme {
			both.Rows = append(both.Rows, []string{c.says})
		}
	}
	for i, column := range columns {
		if !column.readme {
			continue
		}
		both.Columns = append(both.Columns, column.says)
		row := 0
		for _, c := range readmeClients {
			if c.readme {
				figures := func(r result) string { return fmt.Sprintf("%.1f, %.2f", 100*r.Success, r.PerCall) }
				both.Rows[row] = append(both.Rows[row], of(played[i], figures)(c.client))
				row++
			}
		}
	}
	return both
}

// readmeTables returns the tables of all clients.
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
