// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
)

// page has the claims and the table that decides, and results every figure.
const (
	page    = "../../docs/evidence/storms.md"
	results = "results.md"
)

// writing is locked while a file is written: tests that write run in parallel.
var writing sync.Mutex

// put writes tables between the marks of a file.
func put(t testing.TB, path, mark string, tables ...report.Table) {
	t.Helper()
	writing.Lock()
	defer writing.Unlock()
	testkit.NoError(t, terminal.WriteInto(path, mark, tables))
}

// writeAll has -write write pages after the parallel storms of a test. They show all storms.
func writeAll(t *testing.T, all bool, pages func()) {
	t.Helper()
	if !*write {
		return
	}
	if !all {
		t.Fatal("-write needs all storms: -all without -storms, or -grid .")
	}
	t.Cleanup(func() {
		if !t.Failed() {
			pages()
		}
	})
}

// agrees compares tables of a run with a file, unless the file is written.
func agrees(t testing.TB, path, mark string, off map[string][]terminal.Off, tables ...report.Table) {
	t.Helper()
	if *write {
		return
	}
	for _, line := range testkit.Must(terminal.Differences(path, mark, tables, off))(t) {
		t.Errorf("%s: -write writes it", line)
	}
}

// stormAgrees compares a storm with the results. The peers' jitter can't be seeded, and neither can the order of calls of one instant:
// figures may be apart by about twice of what they were in a dozen runs. results.md says how far.
func stormAgrees(t testing.TB, mark string, o *outcome) {
	t.Helper()
	off := map[string][]terminal.Off{
		"success, %": {{Abs: 4}}, "recovery, s": {{Abs: 0.5, Rel: 0.5}}, "peak": {{Abs: 0.3, Rel: 0.15}}, "requests": {{Abs: 0.05, Rel: 0.05}},
		"p50, ms": {{Abs: 10, Rel: 0.15}}, "p99": {{Abs: 60, Rel: 0.7}}, "p999": {{Abs: 100, Rel: 0.75}},
	}
	if o.storm.Title == "two fail" {
		off["p50, ms"] = []terminal.Off{{Abs: 120}} // half of the calls wait for a retry, and one more or less decides
	}
	agrees(t, results, mark, off, sections([]*outcome{o})...)
}

// writePages writes the storms with all peers into the results, and what decides into docs/evidence/storms.md.
func writePages(t *testing.T, list []*outcome) {
	t.Helper()
	put(t, results, "storms", sections(list)...)
	claims, lost := missed(list)
	lost.Title = fmt.Sprintf("Of %d claims about stagger from one connection, these do not hold from every number of connections", claims)
	put(t, results, "misses", lost)
	put(t, page, "storms", summary(list))
	worse := report.Table{Title: "Where another library is better", Columns: []string{"storm", "figure", "stagger", "better"}}
	for _, o := range list {
		for _, w := range o.worse() {
			worse.Rows = append(worse.Rows, []string{o.storm.Title, w.figure, w.own, strings.Join(w.peers, ", ")})
		}
	}
	put(t, page, "worse", worse)
}

// pageClients are the columns of docs/evidence/storms.md, which says what "throttled" is.
var pageClients = []struct{ client, says string }{
	{noRetriesName, "no retries"},
	{"gRPC", "gRPC"},
	{"gRPC, throttling 100/1", "gRPC, throttled"},
	{"grpc-middleware", "go-grpc-middleware"},
	{"failsafe", "failsafe-go"},
	{"stagger", "stagger"},
}

// summary shows success and requests of these clients in each storm.
func summary(list []*outcome) report.Table {
	all := report.Table{Title: "Success in %, and requests at the servers for each call", Columns: []string{"storm"}}
	for _, c := range pageClients {
		all.Columns = append(all.Columns, c.says)
	}
	for _, o := range list {
		row := []string{o.storm.Title + ": " + o.storm.About}
		for _, c := range pageClients {
			row = append(row, of(o, func(r result) string { return fmt.Sprintf("%.1f, %.2f", 100*r.Success, r.PerCall) })(c.client))
		}
		all.Rows = append(all.Rows, row)
	}
	return all
}

// sections are the tables of storms, each below a heading.
func sections(list []*outcome) (tables []report.Table) {
	for _, o := range list {
		slow := "No attempt timeouts"
		if o.storm.attemptTimeout > 0 {
			slow = fmt.Sprintf("Attempt timeouts of %d ms", o.storm.attemptTimeout.Milliseconds())
		}
		s := report.Table{
			Title:   fmt.Sprintf("### %s: %s\n\n%s", o.storm.Title, o.storm.About, slow),
			Columns: []string{"client", "success, %", "recovery, s", "peak", "requests", "p50, ms", "p99", "p999"},
		}
		for i, c := range o.clients {
			s.Rows = append(s.Rows, slices.Delete(o.results[i].Row(c.name), 2, 3)) // the goodput follows from the success
		}
		tables = append(tables, s)
	}
	return tables
}

// missed returns how many claims about stagger from one connection were judged, and those that do not hold from every number of
// connections.
func missed(list []*outcome) (claims int, lost report.Table) {
	lost.Columns = []string{"storm", "what should be", "measured by", "stagger", "stagger, 10 conns", "stagger, 100 conns"}
	for _, o := range list {
		first := slices.IndexFunc(o.clients, func(c client) bool { return c.ours })
		for k, v := range o.results[first].verdicts {
			claims++
			same, ok := []string{o.storm.Title, v.claim, v.beside}, true
			for i, c := range o.clients {
				if c.ours {
					same, ok = append(same, o.results[i].verdicts[k].is), ok && o.results[i].verdicts[k].ok
				}
			}
			if !ok {
				lost.Rows = append(lost.Rows, same)
			}
		}
	}
	return claims, lost
}

// accurate are the storms by which results.md shows how near the simulator is.
var accurate = []string{"pulse", "hedged pulse", "pulse, one down", "one hangs", "outage", "chain outage"}

// writeGrid writes the grid, and how near the simulator is, into the results.
func writeGrid(t *testing.T, list []*outcome) {
	t.Helper()
	all, near := gridTables(list)
	put(t, results, "grid", all)
	put(t, results, "simulator", near)
}

// gridAgrees compares a storm of the grid with the results, which say how far figures may be apart.
func gridAgrees(t testing.TB, o *outcome) {
	t.Helper()
	all, near := gridTables([]*outcome{o})
	points, perCall := []terminal.Off{{Abs: 4}}, []terminal.Off{{Abs: 0.05, Rel: 0.05}}
	if o.storm.Title == "half the workers" {
		perCall = []terminal.Off{{Rel: 0.2}} // as for the simulator
	}
	agrees(t, results, "grid", map[string][]terminal.Off{all.Columns[1]: points, all.Columns[2]: points, all.Columns[3]: perCall}, all)
	agrees(t, results, "simulator", map[string][]terminal.Off{
		near.Columns[2]: points, near.Columns[3]: points, near.Columns[4]: perCall, near.Columns[5]: perCall,
	}, near)
}

// gridTables shows the grid, and how near the simulator is.
func gridTables(list []*outcome) (all, near report.Table) {
	all = report.Table{
		Title:   "Over real gRPC, seed 1: success in %, and requests for each call",
		Columns: []string{"storm", "no retries", "stagger from 1 / 10 / 100 processes", "requests for each call"},
	}
	near = report.Table{
		Title:   "Storms with stagger, by the simulator and over real gRPC in virtual time (seed 1)",
		Columns: []string{"storm", "processes", "success, simulator, %", "over gRPC, %", "requests per call, simulator", "over gRPC"},
	}
	from := []string{"stagger", "stagger, 10 processes", "stagger, 100 processes"}
	for _, o := range list {
		success := of(o, func(r result) string { return fmt.Sprintf("%.2f", 100*r.Success) })
		perCall := of(o, func(r result) string { return fmt.Sprintf("%.2f", r.PerCall) })
		all.Rows = append(all.Rows, []string{o.storm.Title, success(noRetriesName), success(from...), perCall(from...)})
		for _, run := range o.simulated {
			if !slices.Contains(accurate, o.storm.Title) || run.Name != from[0] && run.Name != from[2] {
				continue
			}
			r := o.results[slices.IndexFunc(o.clients, func(c client) bool { return c.name == run.Name })]
			near.Rows = append(near.Rows, []string{
				o.storm.Title, map[string]string{from[0]: "1", from[2]: "100"}[run.Name], fmt.Sprintf("%.2f", 100*run.Fleets[0].Success),
				fmt.Sprintf("%.2f", 100*r.Success), fmt.Sprintf("%.3f", run.Services[len(run.Services)-1].PerCall), fmt.Sprintf("%.3f", r.PerCall),
			})
		}
	}
	return all, near
}

// writeAdmission writes the grid's storms with admission.
func writeAdmission(t *testing.T, list []*outcome) {
	t.Helper()
	put(t, results, "admission", admissionTable(list))
}

// admissionAgrees compares a storm with that table, if all of its clients have played. A hundred gates learn from few answers each, so their
// runs differ most.
func admissionAgrees(t testing.TB, o *outcome) {
	t.Helper()
	if *grid == "" {
		return
	}
	table, off := admissionTable([]*outcome{o}), map[string][]terminal.Off{}
	for _, column := range table.Columns[1:] {
		off[column] = []terminal.Off{{Abs: 6}}
		if strings.Contains(column, "limiter") || strings.Contains(column, "throttler") {
			off[column] = []terminal.Off{{Abs: 100}} // not compared: what failsafe-go's have learned before the trouble is chance
		}
	}
	agrees(t, results, "admission", off, table)
}

func admissionTable(list []*outcome) report.Table {
	all := report.Table{
		Title: "Success, %, from 1 process unless it says more",
		Columns: []string{
			"storm", "no retries", "stagger without, from 1 / 100 processes", "with admission from 1 / 10 / 100 connections",
			"from 10 / 100 processes", "limiter from 1 / 100 processes", "throttler from 1 / 100 processes",
		},
	}
	for _, o := range list {
		success := of(o, func(r result) string { return fmt.Sprintf("%.1f", 100*r.Success) })
		all.Rows = append(all.Rows, []string{
			o.storm.Title, success(noRetriesName), success("stagger", "stagger, 100 processes"),
			success(admission, admission+", 10 conns", admission+", 100 conns"), success(admission+", 10 processes", admission+", 100 processes"),
			success("limiter", "limiter, 100 processes"), success("throttler", "throttler, 100 processes"),
		})
	}
	return all
}

// of returns a function that shows a figure of some clients.
func of(o *outcome, figure func(result) string) func(names ...string) string {
	return func(names ...string) string {
		var list []string
		for _, name := range names {
			list = append(list, figure(o.results[slices.IndexFunc(o.clients, func(c client) bool { return c.name == name })]))
		}
		return strings.Join(list, " / ")
	}
}

// What docs/evidence/storms.md and the list of claims say has the figures of the results, which are compared with a run.
func TestPages_StormsAgree(t *testing.T) {
	t.Parallel()
	all := string(testkit.Must(os.ReadFile(results))(t))
	_, text, _ := strings.Cut(all, "<!-- storms -->\n")
	text, claims, _ := strings.Cut(text, "<!-- /storms -->")
	_, claims, _ = strings.Cut(claims, "<!-- misses -->\n")
	columns := []string{"", "success", "time to recover", "peak arrivals", "requests per call", "p50", "p99", "p999"}
	shown := map[string]string{} // by storm, client and figure
	storm := ""
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			storm, _, _ = strings.Cut(title, ":")
		}
		for i, cell := range rowCells(line) {
			if i > 0 && i < len(columns) {
				shown[storm+"; "+rowCells(line)[0]+"; "+columns[i]] = cell
			}
		}
	}
	compared := 0
	check := func(storm, client, column, figure string) {
		compared++
		said, _ := strconv.ParseFloat(figure, 64)
		is, err := strconv.ParseFloat(shown[storm+"; "+client+"; "+column], 64)
		off := 0.005
		switch {
		case strings.HasPrefix(column, "p"):
			off = 1
		case len(figure) > 1 && figure[len(figure)-2] == '.': // one digit
			off = 0.05
		}
		if err != nil || math.Abs(said-is) > off+1e-9 {
			t.Errorf("%s, %s: the page says %s %s, and results.md %v", storm, client, column, figure, shown[storm+"; "+client+"; "+column])
		}
	}
	better, decides := marked(t, "worse"), marked(t, "storms")
	for _, c := range clients() {
		for _, row := range regexp.MustCompile(`(?m)^\| ([a-z ]+) \| ([a-z0-9 ]+) \| ([\d.]+)[^|]* \| (.*) \|$`).FindAllStringSubmatch(better, -1) {
			if c.name == "stagger" {
				check(row[1], c.name, row[2], row[3])
			}
			for _, m := range regexp.MustCompile(`(?:^|, )`+regexp.QuoteMeta(c.name)+` ([\d.]+)(?: %| ms)?(?:,|$)`).FindAllStringSubmatch(row[4], -1) {
				check(row[1], c.name, row[2], m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^\| ([a-z ]+) \| success no lower[^|]*\| `+regexp.QuoteMeta(c.name)+` ([\d.]+) % \|`).FindAllStringSubmatch(claims, -1) {
			check(m[1], c.name, "success", m[2])
		}
	}
	for line := range strings.Lines(decides) {
		title, _, found := strings.Cut(line, ": ")
		for i, cell := range rowCells(line) {
			if i > 0 && found {
				success, perCall, _ := strings.Cut(cell, ", ")
				check(strings.TrimPrefix(title, "| "), pageClients[i-1].client, "success", success)
				check(strings.TrimPrefix(title, "| "), pageClients[i-1].client, "requests per call", perCall)
			}
		}
	}
	if compared < 140 {
		t.Errorf("%d figures; want 140 or more", compared)
	}
}

// rowCells returns the cells of a table's row.
func rowCells(line string) []string {
	if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
		return nil
	}
	return strings.Split(strings.Trim(line, "| \n"), " | ")
}

// marked returns what stands between the marks of docs/evidence/storms.md.
func marked(t *testing.T, mark string) string {
	t.Helper()
	_, text, _ := strings.Cut(string(testkit.Must(os.ReadFile(page))(t)), "<!-- "+mark+" -->\n")
	text, _, _ = strings.Cut(text, "<!-- /"+mark+" -->")
	return text
}
