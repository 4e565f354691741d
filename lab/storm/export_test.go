// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
)

// written plays a drizzle, and returns the written page and objects.
func written(t *testing.T) (html, objects []byte) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "made")
	path := func(name string) string { return filepath.Join(folder, name) }
	out := must.Get(played(t, target{success: 0.5}, "-html", path("x.html"), "-json", path("x.json")))(t)
	read := func(name string) []byte {
		text := must.Get(os.ReadFile(path(name)))(t)
		if !strings.Contains(out, "written: "+path(name)) {
			t.Errorf("the output does not name %s", name)
		}
		return text
	}
	return read("x.html"), read("x.json")
}

func TestExport(t *testing.T) {
	t.Parallel()
	page, objects := written(t)
	var all struct {
		Seed    uint64           `json:"seed"`
		Storms  []stormLine      `json:"storms"`
		Results []map[string]any `json:"results"`
		Series  []seriesLine     `json:"series"`
	}
	must.Do(t, json.Unmarshal(objects, &all))
	n := len(clients(1))
	if len(all.Results) != n || len(all.Series) != n || len(all.Storms) != 1 || all.Seed != 1 {
		t.Fatalf("%d results, %d series, %d storms, seed %d; want %d, %d, 1, 1",
			len(all.Results), len(all.Series), len(all.Storms), all.Seed, n, n)
	}
	if got := all.Results[1]; all.Results[0]["client"] != "no retries" || got["storm"] != "drizzle" || got["judgement"] != "PASS" {
		t.Errorf("results %v, %v; want those of a drizzle without retries, and with PASS", all.Results[0], got)
	}
	if s := all.Storms[0]; s.Backends != 4 || s.Workers != 5 || s.Service != 0.02 || s.Queue != 375 || s.Capacity != 1000 || s.AttemptTimeout != 0.1 ||
		s.Deadline != 1 || s.Services != 1 || !slices.Equal(s.Phases, []phaseLine{{"lead-in", 0.4, 0.1}, {"trouble", 0.2, 0.1}, {"after", 0.4, 0.1}}) {
		t.Errorf("the storm is described as %+v", s)
	}
	for _, want := range []string{">Drizzle</h2>", "<title>Storms: stagger and its peers</title>", "failsafe, hedge"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if got := bytes.Count(page, []byte("<svg")); got != 6 {
		t.Errorf("%d plots; want 6 for the storm", got)
	}
}
