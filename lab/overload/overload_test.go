// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package overload plays overloads in the simulator, and compares the plots and the table of docs/overload with them.
package overload

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

var write = flag.Bool("write", false, "write plots and table into docs/overload")

// docs/overload and docs/evidence/overload.md show the code's current behaviour.
func TestDocsAreCurrent(t *testing.T) {
	t.Parallel()
	kept := filepath.Join("..", "..", "docs", "overload")
	fresh := kept
	if !*write {
		fresh = t.TempDir()
	}
	rows := testkit.Must(run(t.Context(), "../..", fresh))(t)
	const page = "../../docs/evidence/overload.md"
	written := page
	if !*write {
		written = filepath.Join(t.TempDir(), "overload.md")
		testkit.NoError(t, os.WriteFile(written, testkit.Must(os.ReadFile(page))(t), 0o600))
	}
	testkit.NoError(t, terminal.WriteInto(written, "storms", []report.Table{table(rows)}))
	testkit.NoError(t, terminal.WriteInto(written, "below", []report.Table{below(rows)}))
	if !bytes.Equal(testkit.Must(os.ReadFile(page))(t), testkit.Must(os.ReadFile(written))(t)) {
		t.Error("the tables of storms by the simulator in docs/evidence/overload.md are not what make overload writes: run it and commit")
	}
	files, err := os.ReadDir(fresh)
	if err != nil || len(files) != 2*len(pictures)+1 {
		t.Fatalf("%d files, %v; want %d", len(files), err, 2*len(pictures)+1)
	}
	for _, f := range files {
		want := testkit.Must(os.ReadFile(filepath.Join(fresh, f.Name())))(t)
		if got, err := os.ReadFile(filepath.Join(kept, f.Name())); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/overload/%s is not what make overload writes (%v): run it and commit", f.Name(), err)
		}
	}
}

// table shows the CSV with a row for each storm. Each has no retries, and then stagger.
func table(rows [][]string) report.Table {
	t := report.Table{
		Title: "By the simulator, averages of seeds 1 to 3",
		Columns: []string{
			"storm", "no retries: success, %", "stagger from 1 / 10 / 100 processes", "no retries: recovery, s", "stagger", "stagger: requests a call",
		},
	}
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(row []string) bool { return row[0] != rows[0][0] })
		if n < 0 {
			n = len(rows)
		}
		storm := rows[:n]
		rows = rows[n:]
		of := func(column int) string {
			var list []string
			for _, row := range storm[1:] {
				list = append(list, row[column])
			}
			return strings.Join(list, " / ")
		}
		t.Rows = append(t.Rows, []string{storm[0][0] + ": " + storm[0][1], storm[0][3], of(3), storm[0][4], of(4), of(5)})
	}
	return t
}

// below shows the storms in which stagger's success is more than a point below that without retries.
func below(rows [][]string) report.Table {
	t := report.Table{
		Title:   "By the simulator, stagger loses more than a point in these storms",
		Columns: []string{"storm", "no retries: success, %", "client", "stagger: success, %"},
	}
	var none []string
	for _, row := range rows {
		if none == nil || row[0] != none[0] {
			none = row
		}
		reference, _ := strconv.ParseFloat(none[3], 64) // average has written them
		success, _ := strconv.ParseFloat(row[3], 64)
		if success < reference-1 {
			t.Rows = append(t.Rows, []string{row[0], none[3], row[2], row[3]})
		}
	}
	return t
}

// run reads the scenarios below root, the repository's folder, writes to folder, and returns the rows of the table of storms.
func run(ctx context.Context, root, folder string) ([][]string, error) {
	for _, p := range pictures {
		if err := p.write(ctx, root, folder); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return writeTable(ctx, root, filepath.Join(folder, "storms.csv"))
}

// picture is a scenario with plots.
type picture struct {
	name, scenario string
	service        int // whose arrivals are drawn
}

var pictures = []picture{
	{"gateway", "examples/simulate/overload.yaml", 0},
	{"pulse", "lab/storm/storms/pulse.yaml", 0},
	{"hedged-pulse", "lab/storm/storms/hedged-pulse.yaml", 0},
	{"one-hangs", "lab/storm/storms/one-hangs.yaml", 0},
}

// write plays the scenario, and draws the arrivals and the outcomes of calls.
func (p picture) write(ctx context.Context, root, folder string) error {
	s, err := sim.Load(filepath.Join(root, p.scenario))
	if err != nil {
		return err
	}
	s.Bucket = 250 * time.Millisecond
	r, err := s.Run(ctx, sim.Options{})
	if err != nil {
		return err
	}
	arrivals := report.Plot{Title: "Requests", XLabel: "seconds from the beginning of the trouble", YLabel: "that arrive at the servers, per second"}
	success := report.Plot{Title: "Success", XLabel: arrivals.XLabel, YLabel: "% of the calls that begin then", YMax: 105}
	perSecond := 1 / s.Bucket.Seconds()
	var capacity report.Series
	for _, played := range r.Runs {
		service, fleet := played.Services[p.service], played.Fleets[0]
		line, share := report.Series{Name: played.Name}, report.Series{Name: played.Name}
		capacity = report.Series{Name: "capacity"}
		for i, n := range service.Arrivals {
			at := (time.Duration(i)*s.Bucket + s.Bucket/2 - s.TroubleStart()).Seconds()
			if at < -2 {
				continue
			}
			line.X, line.Y = append(line.X, at), append(line.Y, float64(n)*perSecond)
			capacity.X, capacity.Y = append(capacity.X, at), append(capacity.Y, service.Capacity[i])
			if fleet.Begun[i] > 0 {
				share.X, share.Y = append(share.X, at), append(share.Y, 100*float64(fleet.Succeeded[i])/float64(fleet.Begun[i]))
			}
		}
		arrivals.Series, success.Series = append(arrivals.Series, line), append(success.Series, share)
	}
	arrivals.Series = append(arrivals.Series, capacity)
	return errors.Join(
		draw(arrivals, filepath.Join(folder, p.name+"-requests.svg")),
		draw(success, filepath.Join(folder, p.name+"-success.svg")),
	)
}

func draw(p report.Plot, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(p.WriteSVG(f), f.Close())
}

// Seeds of the averages in the table.
var seeds = []uint64{1, 2, 3}

// writeTable plays every storm with every seed, and returns the rows.
func writeTable(ctx context.Context, root, path string) ([][]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "lab", "storm", "storms", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("there is no storm"))
	}
	rows := [][]string{{"storm", "what", "client", "success", "recoveryS", "requestsPerCall"}}
	for _, file := range files {
		s, err := sim.Load(file)
		if err != nil {
			return nil, err
		}
		more, err := average(ctx, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return rows[1:], errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close())
}

// average returns a row for each client of a storm.
func average(ctx context.Context, s *sim.Scenario) ([][]string, error) {
	type sum struct{ success, recovery, perCall float64 }
	var (
		names []string
		sums  []sum
		state sim.RecoveryState
	)
	for i, seed := range seeds {
		r, err := s.Run(ctx, sim.Options{Seed: seed})
		if err != nil {
			return nil, err
		}
		for k, played := range r.Runs {
			if i == 0 {
				names, sums = append(names, played.Name), append(sums, sum{})
			}
			fleet, last := played.Fleets[0], played.Services[len(played.Services)-1]
			sums[k].success += fleet.Success
			sums[k].recovery += fleet.Recovery.Took.Seconds()
			sums[k].perCall += last.PerCall
			state = fleet.Recovery.State
		}
	}
	number := func(f float64, digits int) string { return strconv.FormatFloat(f/float64(len(seeds)), 'f', digits, 64) }
	var rows [][]string
	for k, name := range names {
		recovery := "–"
		if state == sim.RecoveryReturned {
			recovery = number(sums[k].recovery, 2)
		}
		rows = append(rows, []string{s.Title, s.About, name, number(100*sums[k].success, 2), recovery, number(sums[k].perCall, 3)})
	}
	return rows, nil
}
