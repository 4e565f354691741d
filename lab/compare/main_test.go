// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/testkit"
)

// Tests start the test binary as the program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-one" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// TestCommand runs real measurements, as short as possible, in separate processes.
func TestCommand(t *testing.T) {
	root := t.TempDir()
	page := filepath.Join(root, "docs", "evidence", "costs.md")
	results := filepath.Join(root, "lab", "compare", "results.md")
	testkit.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(page), 0o750), os.MkdirAll(filepath.Dir(results), 0o750),
		os.WriteFile(page, []byte("# Costs\nOn <!-- cost: host -->?<!-- / -->.\n<!-- bounds -->\nSTALE\n<!-- /bounds -->\nend\n"), 0o600),
		os.WriteFile(results, []byte("<!-- one failure -->\nSTALE\n<!-- /one failure -->\n<!-- waiting -->\n<!-- /waiting -->\nend\n"), 0o600),
		os.WriteFile(filepath.Join(root, "README.md"), []byte("It allocates <!-- cost: one failure; stagger; allocations -->9<!-- / --> and <!-- cost: none -->1<!-- / -->.\n"), 0o600)))
	var out, errs bytes.Buffer
	args := []string{"-only", "^(one failure|waiting)$", "-processes", "2", "-rounds", "2", "-slice", "1ns", "-waiting", "3", "-write", root}
	if err := command(t.Context(), args, &out, &errs); err != nil && !strings.Contains(err.Error(), "above their bounds: one failure, stagger: processor × ") {
		t.Fatalf("%v\n%s", err, &errs)
	}
	text := slices.Concat(testkit.Must(os.ReadFile(page))(t), testkit.Must(os.ReadFile(results))(t))
	for _, want := range []string{"(2 processes;", "| stagger | ", "| failsafe-go, budget | ", "(one process)", "| one failure | stagger | processor × |", runtime.Version(), "| client | × two calls without retries | processor × | time | allocations | bytes |"} {
		if !strings.Contains(out.String(), want) || !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s\nand the pages\n%s", want, &out, text)
		}
	}
	if strings.Contains(string(text), "STALE") || !strings.HasSuffix(string(text), "end\n") {
		t.Errorf("the pages are\n%s", text)
	}
	readme := testkit.Must(os.ReadFile(filepath.Join(root, "README.md")))(t)
	if figure := strings.Split(string(readme), "-->")[1]; len(figure) < 3+len("<!-- / ") || !strings.Contains(string(readme), "none -->1<!--") {
		t.Errorf("README.md is %s; want hundreds of allocations, and what was not measured as before", readme)
	}
}

func TestFlagErrors(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`["x"]: want flags only`:                  {"x"},
		`["-processes" "0"]: want flags only`:     {"-processes", "0"},
		`["-waiting" "1000001"]: want flags only`: {"-waiting", "1000001"},
		"-only: error parsing regexp":             {"-only", "("},
		`no table is named "nothing"`:             {"-only", "nothing"},
		"flag: help requested":                    {"-help"},
	} {
		var out, errs bytes.Buffer
		if err := command(t.Context(), args, &out, &errs); err == nil || !strings.Contains(err.Error(), want) && !errors.Is(err, flag.ErrHelp) || out.Len() > 0 {
			t.Errorf("%v: %v, %q; want %s", args, err, &out, want)
		}
	}
}

func TestNoFlags_AllTables(t *testing.T) {
	if o, err := parse(nil, io.Discard); err != nil || len(tables(o)) != len(comparisons())+1 {
		t.Errorf("%d tables, %v; want all", len(tables(o)), err)
	}
}

func TestFound(t *testing.T) {
	t.Parallel()
	c := table{name: "fair", what: "Calls at a fair", columns: []column{{"× a", ratioCell}, {"time", durationCell}, {"bytes", wholeCell}}}
	processes := func(n int) (all [][]row) {
		for i := range n {
			all = append(all, []row{{"a", []float64{1, 100, 10}}, {"b", []float64{2 + float64(i)/10, 1000, 20}}})
		}
		return all
	}
	got := c.found(processes(5))
	want := report.Table{
		Title:   "Calls at a fair (5 processes; the medians of the first column are known to ± 3.8 %)", // 1.25 / 1.35 × 0.2 / 2.2 / √5
		Columns: []string{"client", "× a", "time", "bytes"},
		Rows:    [][]string{{"a", "1", "100 ns", "10"}, {"b", "2.20 (2.10–2.30)", "1 µs", "20"}},
	}
	for i, r := range got.Rows {
		if strings.Join(r, "|") != strings.Join(want.Rows[i], "|") {
			t.Errorf("row %q; want %q", r, want.Rows[i])
		}
	}
	if got.Title != want.Title || strings.Join(got.Columns, "|") != strings.Join(want.Columns, "|") {
		t.Errorf("%q %q; want %q %q", got.Title, got.Columns, want.Title, want.Columns)
	}
	if got := c.found(processes(1)); got.Title != "Calls at a fair (one process)" {
		t.Errorf("%q; want one process", got.Title)
	}
	f := figures{}
	f.add("fair", got)
	if text := f.quote("<!-- cost: fair; b; × a -->7<!-- / --> <!-- cost: fair; b; time -->?<!-- / -->"); text != "<!-- cost: fair; b; × a -->2.20<!-- / --> <!-- cost: fair; b; time -->1 µs<!-- / -->" {
		t.Errorf("quoted: %s", text)
	}
}

// A figure is at most its bound; without its table it has none.
func TestBounds(t *testing.T) {
	t.Parallel()
	c := named(t, uploadName).table()
	at := func(ratio, kept float64) map[string][][]row {
		values := func(ratio, kept float64) []float64 { return []float64{1, ratio, 100, 5, kept} }
		return map[string][][]row{uploadName: {{{bare.name, values(1, 5000)}, {stagger.name, values(ratio, 5000+kept)}}}}
	}
	for _, x := range []struct {
		ratio, kept float64
		want        string
	}{
		{1.21, 162_000, "<nil>"},
		{1.211, 162_000, "above their bounds: client stream, stagger: processor × 1.211"},
		{1, 163_000, "above their bounds: client stream, stagger: bytes, beyond gRPC, no retries 163000"},
	} {
		shown, err := check([]table{c}, at(x.ratio, x.kept))
		if fmt.Sprint(err) != x.want || len(shown.Rows) != 2 {
			t.Errorf("%v: %v in %q; want %s", x, err, shown.Rows, x.want)
		}
	}
	for _, b := range bounds {
		if c := named(t, b.table); !slices.ContainsFunc(c.clients, func(k client) bool { return k.name == b.client }) ||
			!slices.ContainsFunc(c.table().columns, func(k column) bool { return k.name == b.column }) {
			t.Errorf("%+v: no such figure", b)
		}
	}
}

// Each figure that a page quotes is in a table, so that the next run writes it.
func TestQuotes(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"host": true}
	note := func(t table, clients []client) {
		for _, k := range clients {
			for _, c := range t.columns {
				known[t.name+"; "+k.name+"; "+c.name] = true
			}
		}
	}
	for _, c := range comparisons() {
		note(c.table(), c.clients)
	}
	note(memory(options{}), waitingClients)
	quotes := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/evidence/*.md"} {
		for _, page := range testkit.Must(filepath.Glob(pattern))(t) {
			for _, quote := range quoted.FindAllStringSubmatch(string(testkit.Must(os.ReadFile(page))(t)), -1) {
				quotes++
				if !known[quote[1]] {
					t.Errorf("%s quotes %q: no table has it", page, quote[1])
				}
			}
		}
	}
	if quotes == 0 {
		t.Error("no page quotes a figure")
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	for q, want := range map[quartiles]string{
		{1, 1, 1}: "1", {}: "–", {0.996, 1.0234, 1.0401}: "1.023 (0.996–1.040)", {1.4, 1.604, 1.8}: "1.60 (1.40–1.80)", {9.96, 10.04, 20}: "10.0 (10.0–20.0)",
	} {
		if got := ratioCell(q); got != want {
			t.Errorf("%v: %s; want %s", q, got, want)
		}
	}
	for nanos, want := range map[float64]string{
		1.4: "1 ns", 999.4: "999 ns", 999.6: "1 µs", 1234: "1.23 µs", 12_345: "12.3 µs", 123_456: "123 µs",
		9_996_000: "10 ms", 1_234_567: "1.23 ms", 2_345_678_901: "2.346 s",
	} {
		if got := durationCell(quartiles{median: nanos}); got != want {
			t.Errorf("%v: %s; want %s", nanos, got, want)
		}
	}
	if got := wholeCell(quartiles{median: -0.4}); got != "0" {
		t.Errorf("%s; want 0", got)
	}
}
