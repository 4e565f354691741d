// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simcheck

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/sim"
)

var stormFile = flag.String("storm", "testdata/storm.json", "the `file` that make storm wrote with -json")

// storms are what `make storm` has measured in real time, and of what.
type storms struct {
	Storms []struct {
		Name     string  `json:"name"`
		Services int     `json:"services"`
		Backends int     `json:"backends"`
		Workers  int     `json:"workers"`
		Service  float64 `json:"serviceS"`
		Queue    int     `json:"queue"`
		Capacity float64 `json:"capacityPerS"`
		Deadline float64 `json:"deadlineS"`
		Phases   []struct {
			Kind   string  `json:"kind"`
			Length float64 `json:"lengthS"`
			Load   float64 `json:"load"`
		} `json:"phases"`
	} `json:"storms"`
	Results []struct {
		Storm   string  `json:"storm"`
		Client  string  `json:"client"`
		Success float64 `json:"success"`
		PerCall float64 `json:"requestsPerCall"`
		Late    float64 `json:"lateP99Ms"`
	} `json:"results"`
}

func read(t *testing.T) storms {
	t.Helper()
	text, err := os.ReadFile(*stormFile)
	if err != nil {
		t.Fatal(err)
	}
	var s storms
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// tooLate is how late a machine may have begun 1 % of the calls, in milliseconds: beyond, what it measured is
// its own slowness.
const tooLate = 50

func TestTheSimulatorAgreesWithMakeStorm(t *testing.T) {
	t.Parallel()
	all := scenarios(t)
	compared := map[string]int{}
	for _, r := range read(t).Results {
		if all[r.Storm] == nil || r.Client != "no retries" && r.Client != "stagger" {
			continue
		}
		if r.Late > tooLate {
			t.Logf("%s, %s: the machine could not keep up", r.Storm, r.Client)
			continue
		}
		compared[r.Storm]++
		simulate(t, all[r.Storm])[r.Client].compare(t, r.Client, "make storm, "+r.Storm+",", figures{r.Success, r.PerCall})
	}
	if len(compared) != len(all) {
		t.Errorf("%d storms were compared; want all %d", len(compared), len(all))
	}
}

// A storm that is changed is to be changed here too.
func TestTheScenariosHaveTheFiguresOfTheStorms(t *testing.T) {
	t.Parallel()
	all := scenarios(t)
	kinds := map[string]sim.Kind{"lead-in": sim.Lead, "trouble": sim.Trouble, "after": sim.After}
	for _, storm := range read(t).Storms {
		s := all[storm.Name]
		if s == nil {
			t.Errorf("no scenario for the storm %q", storm.Name)
			continue
		}
		last, users := s.Services[len(s.Services)-1], s.Fleets[0]
		for what, ok := range map[string]bool{
			"services": len(s.Services) == storm.Services,
			"backends": last.Backends == storm.Backends && last.Workers == storm.Workers && last.Queue == storm.Queue,
			"service":  last.Time.Mean().Seconds() == storm.Service,
			"rate":     users.Rate == storm.Capacity,
			"deadline": users.Call.Deadline.Seconds() == storm.Deadline,
			"phases":   len(s.Phases) == len(storm.Phases),
		} {
			if !ok {
				t.Errorf("%s: the scenario has other %s: %+v", storm.Name, what, storm)
			}
		}
		for i, p := range storm.Phases {
			own := s.Phases[i]
			if own.Kind != kinds[p.Kind] || own.Length != time.Duration(p.Length*float64(time.Second)) || own.Load != p.Load {
				t.Errorf("%s: phase %d is %+v; want %+v", storm.Name, i, own, p)
			}
		}
	}
}
