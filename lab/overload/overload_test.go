// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package overload plays overloads in the simulator, and compares storms.csv, and a plot and a table of docs/evidence/storms.md, with them.
package overload

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

var write = flag.Bool("write", false, "write the plot and the tables")

// The plot and the tables show the code's current behaviour.
func TestDocsAreCurrent(t *testing.T) {
	t.Parallel()
	const evidence = "../../docs/evidence/storms.md"
	fresh := t.TempDir()
	testkit.NoError(t, plot(t.Context(), filepath.Join(fresh, "success.svg")))
	rows := testkit.Must(writeTable(t.Context(), filepath.Join(fresh, "storms.csv")))(t)
	page := filepath.Join(fresh, "storms.md")
	testkit.NoError(t, os.WriteFile(page, testkit.Must(os.ReadFile(evidence))(t), 0o600))
	testkit.NoError(t, terminal.WriteInto(page, "below", []report.Table{below(rows)}))
	testkit.NoError(t, terminal.WriteInto(page, "far below", []report.Table{testkit.Must(farBelow(t.Context()))(t)}))
	for name, kept := range map[string]string{
		"success.svg": "../../docs/overload/gateway-success.svg", "storms.csv": "storms.csv", "storms.md": evidence,
	} {
		want := testkit.Must(os.ReadFile(filepath.Join(fresh, name)))(t)
		if *write {
			testkit.NoError(t, os.WriteFile(kept, want, 0o644))
			continue
		}
		if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what make overload writes (%v): run it and commit", kept, err)
		}
	}
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

// plot draws the success of calls in an overload that retries prolong.
func plot(ctx context.Context, path string) error {
	s, err := sim.Load("../../cmd/stagger/scenarios/overload.yaml")
	if err != nil {
		return err
	}
	s.Bucket = 250 * time.Millisecond
	r, err := s.Run(ctx, sim.Options{})
	if err != nil {
		return err
	}
	success := report.Plot{
		Title: "Success", XLabel: "seconds from the beginning of the trouble", YLabel: "% of the calls that begin then", YMax: 105,
	}
	for _, played := range r.Runs {
		fleet, share := played.Fleets[0], report.Series{Name: played.Name}
		for i, begun := range fleet.Begun {
			at := (time.Duration(i)*s.Bucket + s.Bucket/2 - s.TroubleStart()).Seconds()
			if at >= -2 && begun > 0 {
				share.X, share.Y = append(share.X, at), append(share.Y, 100*float64(fleet.Succeeded[i])/float64(begun))
			}
		}
		success.Series = append(success.Series, share)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(success.WriteSVG(f), f.Close())
}

// Seeds of the averages in the table.
var seeds = []uint64{1, 2, 3}

// writeTable plays every storm with every seed, and returns the rows.
func writeTable(ctx context.Context, path string) ([][]string, error) {
	files, err := filepath.Glob("../storm/storms/*.yaml")
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
