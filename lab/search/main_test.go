// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
)

func TestParse_Errors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ args, want string }{
		{"-n 0", "-n 0: must be at least 1"},
		{"-plays 6", "-plays 6: must be 1 to 5"},
		{"-seed 1,x", `"1,x": want whole numbers with commas between`},
		{"-most 1,2", `"1,2": want three numbers with commas between`},
		{"-player mine", `-player "mine": must be one of gRPC throttled, 4 attempts, default`},
		{"more", `argument "more": want flags only`},
	} {
		if _, err := parse(strings.Fields(row.args), io.Discard); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v; want %s", row.args, err, row.want)
		}
	}
}

func TestMost(t *testing.T) {
	t.Parallel()
	list := []*judged{
		{Players: map[string][]outcome{noRetries: successes(0.9), defaultPlayer: successes(0.85)}},
		{Players: map[string][]outcome{noRetries: successes(0.9), defaultPlayer: successes(0.7)}},
		{Players: map[string][]outcome{noRetries: successes(0.9), defaultPlayer: successes(0.1)}},
		{Players: map[string][]outcome{noRetries: successes(0.9), defaultPlayer: successes(0.9)}},
	}
	for flag, ok := range map[string]bool{"3,2,1": true, "2,2,1": false, "3,1,1": false, "3,2,0": false} {
		o := must.Get(parse([]string{"-most", flag}, io.Discard))(t)
		if err := o.most.check(list); (err == nil) != ok {
			t.Errorf("-most %s: %v", flag, err)
		}
	}
	if err := (most{}).check(list); err != nil {
		t.Errorf("without -most: %v", err)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	list := []*judged{
		{Seed: 1, Index: 0, Words: "a", LowLoad: true, Players: map[string][]outcome{noRetries: successes(0.5, 0.5), defaultPlayer: successes(0.9, 0.7)}},
		{Seed: 1, Index: 1, Words: "b", LowLoad: true, Players: map[string][]outcome{noRetries: successes(0.5), defaultPlayer: successes(0.5)}},
		{Seed: 2, Index: 1, Words: "c", Players: map[string][]outcome{noRetries: successes(0.5), defaultPlayer: successes(0.6)}},
	}
	must.Do(t, writeResults(path, list))
	before := must.Get(readResults(path))(t)
	list[0].Players[defaultPlayer] = successes(0.8, 0.76) // 2 points less on average
	list[1].Players[defaultPlayer] = successes(0.52)
	list[2].Words = "of another generator"
	got := against(before, list, defaultPlayer)
	if got.scenarios != 2 || got.low != 2 || got.lowOver05 != 1 || got.over05 != 1 || got.over1 != 1 || got.over3 != 0 || got.up1 != 1 {
		t.Errorf("%+v", got)
	}
	must.Do(t, os.WriteFile(path, []byte("{}"), 0o600))
	if _, err := readResults(path); err == nil || !strings.Contains(err.Error(), "want what -out has written") {
		t.Errorf("another file: %v", err)
	}
}
