// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package overload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/sim"
)

// remedies are changes of the storms' policy file, by which fleets can be helped that are far below no retries.
var remedies = []struct {
	says   string
	change func(text string) string
}{
	{"with `perAttemptTimeout: 0.2s`", func(text string) string {
		return strings.ReplaceAll(text, "    retryPolicy:\n", "    retryPolicy:\n      perAttemptTimeout: 0.2s\n")
	}},
	{"with `size: 2`", func(text string) string {
		for _, kind := range []string{"    retryPolicy:\n", "    hedgingPolicy:\n"} {
			text = strings.ReplaceAll(text, kind, kind+"      budget: small\n")
		}
		return "budgets: [{name: small, bucket: {size: 2}}]\n" + text
	}},
	{"with `admission: REFUSE`", func(text string) string {
		return strings.ReplaceAll(text, "  - name:", "  - admission: REFUSE\n    name:")
	}},
}

// most is how far below no retries a fleet must be to be listed, in success from 0 to 1.
const most = 0.08

// farBelow lists the storms and fleets that are below no retries by more than that, with each remedy played.
func farBelow(ctx context.Context) (report.Table, error) {
	t := report.Table{
		Title:   "By the simulator, success in % of storms and fleets that lose more than 8 points, and what each remedy brings",
		Columns: []string{"storm", "processes", "no retries", "stagger"},
	}
	for _, r := range remedies {
		t.Columns = append(t.Columns, r.says)
	}
	files, err := filepath.Glob("../storm/storms/*.yaml")
	if err != nil {
		return t, err
	}
	plain, err := os.ReadFile("../storm/retry.yaml")
	if err != nil {
		return t, err
	}
	text := withoutTimeouts(string(plain))
	for _, file := range files {
		for _, processes := range []int{1, 100, 300} {
			reference, err := successOf(ctx, file, processes, "", true)
			if err != nil {
				return t, err
			}
			own, err := successOf(ctx, file, processes, string(plain), false)
			if err != nil {
				return t, err
			}
			if own >= reference-most {
				continue
			}
			s, err := sim.Load(file)
			if err != nil {
				return t, err
			}
			row := []string{s.Title, fmt.Sprint(processes), percent(reference), percent(own)}
			for i, r := range remedies {
				changed := r.change(string(plain))
				if i == 0 {
					changed = r.change(text) // an entry has one attempt timeout
				}
				with, err := successOf(ctx, file, processes, changed, false)
				if err != nil {
					return t, err
				}
				row = append(row, percent(with))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

// withoutTimeouts removes the attempt timeouts of a policy file.
func withoutTimeouts(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "perAttemptTimeout") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// successOf returns the success of the first fleet, average of all seeds.
func successOf(ctx context.Context, file string, processes int, text string, none bool) (float64, error) {
	s, err := sim.Load(file)
	if err != nil {
		return 0, err
	}
	s.Variants = []sim.Variant{{Name: "played", Clients: processes}}
	if none {
		s.Variants[0].All = sim.NoPolicy
	} else {
		p, err := sim.ReadPolicy("retry.yaml", []byte(text))
		if err != nil {
			return 0, err
		}
		s.Policies["storm"] = p
	}
	sum := 0.0
	for _, seed := range seeds {
		r, err := s.Run(ctx, sim.Options{Seed: seed})
		if err != nil {
			return 0, err
		}
		sum += r.Runs[0].Fleets[0].Success
	}
	return sum / float64(len(seeds)), nil
}

func percent(part float64) string { return fmt.Sprintf("%.1f", 100*part) }
