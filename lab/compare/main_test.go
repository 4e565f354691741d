// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCommand lets it measure in earnest, as little as possible.
func TestCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	var out, errs bytes.Buffer
	err := command([]string{
		"-only", "^one failure(, stub)?$|^server stream$|^waiting$", "-sessions", "1", "-rounds", "2", "-slice", "1ns",
		"-waiting", "3", "-json", path,
	}, &out, &errs)
	if err != nil {
		t.Fatal(err)
	}
	titles := []string{"one failure, stub", "one failure", "server stream", "waiting"}
	if got := strings.Count(out.String(), "### "); got != len(titles) || strings.Count(errs.String(), "\n") != len(titles) {
		t.Errorf("%d tables in\n%s\nand progress\n%s\nwant %d", got, &out, &errs, len(titles))
	}
	for _, title := range titles {
		if !strings.Contains(out.String(), "### "+title+"\n") || !strings.Contains(errs.String(), title+": ") {
			t.Errorf("no %q in\n%s\nand\n%s", title, &out, &errs)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f figures
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Costs) != 6+8+6 || len(f.Absent) != 3 || len(f.Held) != 1+7 {
		t.Errorf("%d costs, %d absent, %d held; want 20, 3, 8", len(f.Costs), len(f.Absent), len(f.Held))
	}
	for _, c := range f.Costs {
		if c.Comparison == "" || c.Client == "" || c.Base == "" || c.Goroutines != 1 || c.Operations != 1 || c.Nanos.Median <= 0 || c.Ratio.Median <= 0 {
			t.Errorf("incomplete: %+v", c)
		}
	}
	for _, h := range f.Held {
		if h.Comparison == "" || h.Client == "" || h.Count < 2 || h.Bytes == 0 {
			t.Errorf("incomplete: %+v", h)
		}
	}
	if f.Host.Go != runtime.Version() || f.Host.CPUs < 1 || !strings.Contains(out.String(), f.Host.Platform) {
		t.Errorf("host %+v", f.Host)
	}
}

func TestFlagErrors(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`argument "x": want flags only`:          {"x"},
		`-sessions 0: want at least 1`:           {"-sessions", "0"},
		`-rounds -1: want at least 1`:            {"-rounds", "-1"},
		`-slice 0s: want more than 0`:            {"-slice", "0"},
		`-waiting 1000001: want 1 to 1000000`:    {"-waiting", "1000001"},
		`-streams 0: want 1 to 10000`:            {"-streams", "0"},
		"-only: error parsing regexp":            {"-only", "("},
		`-only "nothing": matches no comparison`: {"-only", "nothing"},
		"flag provided but not defined: -what":   {"-what"},
	} {
		var out, errs bytes.Buffer
		if err := command(args, &out, &errs); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%v: %v, %q; want %s", args, err, &out, want)
		}
	}
	var out, errs bytes.Buffer
	if err := command([]string{"-help"}, &out, &errs); !errors.Is(err, flag.ErrHelp) || !strings.Contains(errs.String(), "-sessions") {
		t.Errorf("%v, %s", err, &errs)
	}
}

func TestComparisonNames(t *testing.T) {
	t.Parallel()
	s, err := parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, one := range sections(s) {
		if one.name == "" || seen[one.name] {
			t.Errorf("two comparisons are called %q", one.name)
		}
		seen[one.name] = true
	}
	if want := len(comparisons()) + 1 + len(payloads()); len(seen) != want {
		t.Errorf("%d comparisons; want %d", len(seen), want)
	}
}
