// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

// What each list of draws can give is drawn, and a draw that is replaced changes no other.
func TestDraw(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	keys := []string{
		"exponential", "lognormal", "bimodal", "DROP", "LIFO", `"UNAVAILABLE"`, "down", "hang", "flaky", "slow\"", "slower",
		`"name": "front"`, "List", "delay", "loss", "perAttemptTimeout", "hedgingPolicy", "RESOURCE_EXHAUSTED", "NOT_FOUND", "ABORTED",
		"thrash", "connect", "codel", "cache", "limit", "flush",
		"10m0s", "busy", "crowds", "pauses", "slow starts", "brownout", "the last hop has", "stagger_retry_elsewhere",
	}
	for i := range 200 {
		s := testkit.Must(draw(t.Context(), newChance(harm, 7, i, nil), []string{noRetries, defaultPlayer}))(t)
		again := testkit.Must(draw(t.Context(), newChance(harm, 7, i, nil), []string{noRetries, defaultPlayer}))(t)
		if string(again.file) != string(s.file) {
			t.Fatalf("scenario %d differs when it is drawn again:\n%s\nfirst:\n%s", i, again.file, s.file)
		}
		for _, key := range keys {
			if strings.Contains(string(s.file), key) {
				seen[key]++
			}
		}
		newest := testkit.Must(draw(t.Context(), newChance(harm, 7, i, map[string]float64{"order": 0}), []string{noRetries, defaultPlayer}))(t)
		if a, b := string(newest.file), strings.ReplaceAll(string(s.file), "LIFO", "FIFO"); len(s.Services) == 1 && a != b {
			t.Errorf("scenario %d with another order:\n%s\nwant\n%s", i, a, b)
		}
	}
	for _, key := range keys {
		if seen[key] == 0 {
			t.Errorf("%s is never drawn", key)
		}
	}
}

// In the set of old processes, each knows its methods before the trouble; in that of loops, each scenario has one.
func TestDraw_Sets(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i := range 40 {
		s := testkit.Must(draw(t.Context(), newChance(harmOld, 7, i, nil), []string{noRetries, defaultPlayer}))(t)
		var calls float64
		for _, f := range s.Fleets {
			calls += f.Rate * s.Phases[0].Load * age.Seconds()
		}
		want := 0.9 * min(oldCalls*float64(s.Fleets[0].Clients), mostOld)
		if s.Phases[0].Length != age || calls < want || s.kind != rowOld {
			t.Errorf("scenario %d of old processes: %.0f calls in %v; want %.0f in %v: %s", i, calls, s.Phases[0].Length, want, age, s.About)
		}
		s = testkit.Must(draw(t.Context(), newChance(loops, 7, i, nil), []string{noRetries, defaultPlayer}))(t)
		n := 0
		for _, loop := range []string{`"thrash"`, `"connect"`, `"cache"`, `"lifetime"`} {
			if strings.Contains(string(s.file), loop) {
				seen[loop]++
				n++
			}
		}
		if n == 0 || s.kind != rowLoops {
			t.Errorf("scenario %d of loops has none: %s", i, s.About)
		}
	}
	if len(seen) < 4 {
		t.Errorf("loops: %v; want all four", seen)
	}
}

// A player without each number of the bucket plays for the page.
func TestWithoutKeys(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[budget.BucketConfig]()) {
		want = append(want, strings.ToLower(f.Name[:1])+f.Name[1:])
	}
	for _, name := range withoutKeys {
		key, _, _ := strings.Cut(name, "=")
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("players without %v; want %v", got, want)
	}
}

// The command fails above a bound of either question, and says what it wants.
func TestCommand_Errors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-n 3":                             "want at least one -seed",
		"-seed 1 -n 0":                     "want at least one -seed, a scenario",
		"-seed 1 -most 1,2":                "three numbers for -most",
		"-seed 1 -most-lost 1":             "two for -most-lost",
		"-seed 1 -players some":            `"some": want some of`,
		"-seed 1 -n 1 -players slowCost=0": "slowCost: 0: must be",
	} {
		if err := command(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q", args, err, want)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	const few = "-seed 104 -players default -n 3 -old 2 -loops 2 -help-set 6 -help-old 1 "
	each := filepath.Join(t.TempDir(), "each.jsonl")
	for args, want := range map[string]string{
		few + "-most 3,3,3 -most-lost 100,100 -each " + each: "",
		few + "-most-lost 0,100":                             "the default loses too much help",
		few + "-most-lost 100,0.1":                           "the default loses too much help",
	} {
		var out strings.Builder
		err := command(t.Context(), strings.Fields(args), &out, io.Discard)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v; want %q", args, err, want)
		}
		for _, row := range []string{rowOld, rowLoops, rowSpread, rowOldHelp} {
			if want == "" && !strings.Contains(out.String(), row) {
				t.Errorf("%s:\n%s\nwant the tables of kinds, with %q", args, out.String(), row)
			}
		}
	}
	page, written := filepath.Join(t.TempDir(), "page.md"), filepath.Join(t.TempDir(), "results.md")
	testkit.NoError(t, os.WriteFile(page, []byte("<!-- search -->\n<!-- /search -->\n"), 0o600))
	testkit.NoError(t, os.WriteFile(written, []byte("<!-- search -->\n<!-- /search -->\n<!-- part -->\n<!-- /part -->\n"), 0o600))
	for _, row := range []struct {
		args string
		same bool
	}{
		{few + "-results " + written + " -page " + page, true},
		{few + "-same " + written, true},
		{strings.Replace(few, "104", "105", 1) + "-same " + written, false},
	} {
		err := command(t.Context(), strings.Fields(row.args), io.Discard, io.Discard)
		if (err == nil) != row.same || err != nil && !strings.Contains(err.Error(), "a rule has changed") {
			t.Errorf("%s: error %v; want the same: %v", row.args, err, row.same)
		}
	}
	if lines := strings.Count(string(testkit.Must(os.ReadFile(each))(t)), "\n"); lines != 14 {
		t.Errorf("%d lines; want one of each scenario", lines)
	}
	bad := &judged{Players: map[string][]outcome{noRetries: successes(0.9, 0.9), defaultPlayer: successes(0.5, 0.8)}}
	if checkBounds([]*judged{bad}, nil, []uint64{1, 0, 0}, nil) != nil || checkBounds([]*judged{bad}, nil, []uint64{0, 0, 0}, nil) == nil {
		t.Error("one scenario in which the default loses 10 points: want an error only with -most 0,0,0")
	}
}

// successes returns outcomes that differ only in their success.
func successes(list ...float64) (of []outcome) {
	for _, s := range list {
		of = append(of, outcome{Success: s, PerCall: 1})
	}
	return of
}

func TestCompare(t *testing.T) {
	t.Parallel()
	never := func(list []outcome, which ...int) []outcome {
		for _, i := range which {
			list[i].Never = true
		}
		return list
	}
	for name, row := range map[string]struct {
		none, own   []outcome
		loss        float64
		half, never bool
	}{
		"better, in one play":                       {successes(0.5), successes(0.7), -0.2, false, false},
		"of five plays, the mean":                   {successes(1, 1, 1, 1, 1), successes(0.9, 1, 1, 1, 1), 0.02, false, false},
		"no retries played more":                    {successes(0.9, 0.1), successes(0.9), 0, false, false},
		"not played":                                {successes(0.9, 0.1), nil, 0, false, false},
		"below half":                                {successes(0.8, 0.8), successes(0.1, 0.6), 0.45, true, false},
		"half of next to nothing":                   {successes(0.01), successes(0), 0.01, false, false},
		"never recovers, in most":                   {successes(1, 1, 1), never(successes(1, 1, 1), 0, 2), 0, false, true},
		"never recovers, in few":                    {successes(1, 1, 1), never(successes(1, 1, 1), 0), 0, false, false},
		"never recovers, as without retries":        {never(successes(1), 0), never(successes(1), 0), 0, false, false},
		"never recovers, with no retries in others": {never(successes(1, 1), 1), never(successes(1, 1), 0), 0, false, false},
	} {
		if v := compare(row.own, row.none); math.Abs(v.loss-row.loss) > 1e-9 || v.half != row.half || v.never != row.never {
			t.Errorf("%s: %+v; want %v, %v, %v", name, v, row.loss, row.half, row.never)
		}
	}
}

// The play that makes a scenario suspicious proves nothing.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		own  []outcome
		loss float64
	}{
		"not suspicious":     {successes(0.9), 0},
		"worse by chance":    {successes(0.2, 0.9, 0.9, 0.9, 0.9), 0},
		"worse in all plays": {successes(0.5, 0.8, 0.8, 0.8, 0.8), 0.1},
	} {
		j := &judged{Players: map[string][]outcome{noRetries: successes(0.9, 0.9, 0.9, 0.9, 0.9), defaultPlayer: row.own}}
		if v := j.verdict(defaultPlayer); math.Abs(v.loss-row.loss) > 1e-9 {
			t.Errorf("%s: %+v; want a loss of %v", name, v, row.loss)
		}
	}
}

// Help is lost against the best of those who can help, whatever others do.
func TestLost(t *testing.T) {
	t.Parallel()
	j := &judged{Set: help, Kind: rowBlips, Players: map[string][]outcome{
		noRetries: successes(0.5, 0.5), grpcThrottled: successes(0.6, 0.6), grpcPlain: successes(0.9, 0.7), unbound: successes(0.7, 0.8),
		defaultPlayer: successes(0.75, 0.77),
	}}
	for name, want := range map[string]float64{noRetries: 0.3, grpcThrottled: 0.2, grpcPlain: 0, unbound: 0.05, defaultPlayer: 0.04} {
		if lost := j.lost(name); math.Abs(lost-want) > 1e-9 {
			t.Errorf("%s loses %v; want %v", name, lost, want)
		}
	}
	best := &judged{Set: help, Kind: rowSpread, Players: map[string][]outcome{
		noRetries: successes(0.5), grpcThrottled: successes(0.6), grpcPlain: successes(0.9), unbound: successes(0.7), defaultPlayer: successes(1),
	}}
	list := []*judged{j, best}
	s := sumHelp(list, defaultPlayer)
	if s.over != [4]float64{0.5, 0.5, 0, 0} || math.Abs(s.mean-0.02) > 1e-9 || s.perCall != 1 {
		t.Errorf("both: %+v", s)
	}
	if s := sumHelp(ofKind(list, rowBlips), defaultPlayer); s.over != [4]float64{1, 1, 0, 0} {
		t.Errorf("blips: %+v", s)
	}
}

// The search must find a client that retries without a limit, and shrink what it found.
func TestSearch(t *testing.T) {
	t.Parallel()
	list := testkit.Must(search(t.Context(), harm, []uint64{104}, 40, []string{floor, grpcPlain}, func(float64) {}))(t)
	if s := sumHarm(list, grpcPlain); s.over[1] == 0 {
		t.Fatalf("retries without a throttle lose more than 3 points in no scenario: %+v", s)
	}
	if s := sumHarm(list, floor); s.gain == 0 || s.over[2] > 0 {
		t.Errorf("no retries with other times of the services: %+v; want some difference, and none of 10 points", s)
	}
	again := testkit.Must(search(t.Context(), harm, []uint64{104}, 2, []string{floor, grpcPlain}, func(float64) {}))(t)
	if !reflect.DeepEqual(again, list[:2]) {
		t.Errorf("played again: %+v; want %+v", again, list[:2])
	}
	folder, out := filepath.Join(t.TempDir(), "worst"), strings.Builder{}
	testkit.NoError(t, showWorst(t.Context(), &out, folder, list, grpcPlain))
	files, err := filepath.Glob(folder + "/harm-104-*.json")
	if err != nil || len(files) == 0 || !strings.Contains(out.String(), "shrunk: ") {
		t.Fatalf("%v, %v, %s", files, err, out.String())
	}
	simple := 0
	for _, file := range files {
		s := &scenario{Scenario: testkit.Must(sim.Load(file))(t)}
		if loss := testkit.Must(s.lossOf(t.Context(), s.Variants[len(s.Variants)-1].Name))(t); loss < leastLoss && loss < 0.01 {
			t.Errorf("%s: %.3f worse after shrinking", file, loss)
		}
		if len(s.Services) == 1 && s.Services[0].Backends == 1 {
			simple++
		}
	}
	if simple == 0 {
		t.Errorf("none of %d files has one service with one backend", len(files))
	}
}

// Solved cases must not come back.
func TestWorst(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("worst/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenario", err)
	}
	for _, file := range files {
		s := &scenario{Scenario: testkit.Must(sim.Load(file))(t)}
		if loss := testkit.Must(s.lossOf(t.Context(), s.Variants[len(s.Variants)-1].Name))(t); loss > leastLoss {
			t.Errorf("%s: %.1f points worse than no retries", file, 100*loss)
		}
	}
}
