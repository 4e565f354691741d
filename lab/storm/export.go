// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// export writes the requested files, and prints their names.
func export(out io.Writer, o options, outcomes []*outcome) error {
	all := newFile(o.seed, outcomes)
	page := newPage(o, outcomes)
	return errors.Join(
		writeFile(out, o.html, page.WriteHTML),
		writeFile(out, o.json, func(w io.Writer) error { return writeJSON(w, all) }),
	)
}

// writeFile writes a file, and creates its folder if necessary.
func writeFile(out io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	printf(out, "written: %s\n", path)
	return nil
}

// file has all results and their set-up, for other programs.
type file struct {
	Seed     uint64        `json:"seed"`
	Storms   []stormLine   `json:"storms"`
	Results  []line        `json:"results"`
	Verdicts []verdictLine `json:"verdicts"`
	Series   []seriesLine  `json:"series"`
}

// line is a result for other programs.
type line struct {
	Storm     string    `json:"storm"`
	Client    string    `json:"client"`
	Calls     int       `json:"calls"`
	Success   float64   `json:"success"`         // of the calls, 0 to 1
	Goodput   float64   `json:"goodputPerS"`     // calls
	Recovery  *float64  `json:"recoveryS"`       // null: never, or nothing to recover from
	Recovered bool      `json:"recovered"`       // false: never, or nothing to recover from
	Peak      float64   `json:"peakPerCapacity"` // arrivals in 200 ms, at the last service
	PerCall   float64   `json:"requestsPerCall"` // at the last service
	Services  []float64 `json:"requestsByService"`
	P50       float64   `json:"p50Ms"`
	P99       float64   `json:"p99Ms"`
	P999      float64   `json:"p999Ms"`
	Late      float64   `json:"lateP99Ms"` // delay of calls' beginnings, due to the machine
	Target    string    `json:"target"`
	Judgement string    `json:"judgement"` // PASS, MISS, VOID or ""
}

// stormLine is a storm and its set-up. In a chain, all services but the last have twice its workers. An attempt timeout of 0
// is none.
type stormLine struct {
	Name           string      `json:"name"`
	What           string      `json:"what"`
	Services       int         `json:"services"`
	Backends       int         `json:"backends"`
	Workers        int         `json:"workers"` // of each backend
	Service        float64     `json:"serviceS"`
	Queue          int         `json:"queue"`        // of each backend
	Capacity       float64     `json:"capacityPerS"` // of the last service
	AttemptTimeout float64     `json:"attemptTimeoutS"`
	Deadline       float64     `json:"deadlineS"`
	Phases         []phaseLine `json:"phases"`
}

type phaseLine struct {
	Kind   string  `json:"kind"` // lead-in, trouble or after
	Length float64 `json:"lengthS"`
	Load   float64 `json:"load"` // calls as a part of the capacity
}

type verdictLine struct {
	Storm     string `json:"storm"`
	Client    string `json:"client"`
	Claim     string `json:"claim"`
	Is        string `json:"is"`
	Beside    string `json:"beside,omitempty"` // what it was compared with
	Judgement string `json:"judgement"`
	Why       string `json:"why,omitempty"` // of a miss
}

// seriesLine counts time from the beginning of the trouble.
type seriesLine struct {
	Storm    string    `json:"storm"`
	Client   string    `json:"client"`
	At       []float64 `json:"atS"`
	Calls    []float64 `json:"callsPerS"`
	Good     []float64 `json:"goodPerS"`
	Requests []float64 `json:"requestsPerS"` // at the last service
}

func newFile(seed uint64, outcomes []*outcome) file {
	f := file{Seed: seed, Results: lines(outcomes)}
	for _, o := range outcomes {
		f.Storms = append(f.Storms, newStormLine(o.storm))
		for i, c := range o.clients {
			r := o.results[i]
			for _, v := range r.verdicts {
				f.Verdicts = append(f.Verdicts, verdictLine{o.storm.Title, c.name, v.claim, v.is, v.beside, string(v.judgement), v.why})
			}
			f.Series = append(f.Series, seriesLine{o.storm.Title, c.name, r.series.At, r.series.Calls, r.series.Good, r.series.Requests})
		}
	}
	return f
}

// kinds are the kinds of phases, with their names in the file.
var kinds = map[sim.Kind]string{sim.KindLead: "lead-in", sim.KindTrouble: "trouble", sim.KindAfter: "after"}

func newStormLine(s storm) stormLine {
	last := s.last()
	l := stormLine{
		Name: s.Title, What: s.About, Services: len(s.Services), Backends: last.Backends, Workers: last.Workers,
		Service: last.Time.Mean().Seconds(), Queue: last.Queue, Capacity: last.Capacity(),
		AttemptTimeout: s.attemptTimeout.Seconds(), Deadline: s.deadline().Seconds(),
	}
	for _, p := range s.Phases {
		l.Phases = append(l.Phases, phaseLine{kinds[p.Kind], p.Length.Seconds(), p.Load})
	}
	return l
}

func lines(outcomes []*outcome) []line {
	var list []line
	for _, o := range outcomes {
		for i, x := range o.results {
			l := line{
				Storm: o.storm.Title, Client: o.clients[i].name, Calls: x.Calls, Success: x.Success, Goodput: x.Goodput,
				Peak: x.Peak, PerCall: x.PerCall, Services: x.Services, P50: inMillis(x.P50), P99: inMillis(x.P99),
				P999: inMillis(x.P999), Late: inMillis(x.Late), Target: o.storm.targetOf(o.clients[i]).String(),
			}
			if j := x.judgement(); j != unjudged {
				l.Judgement = string(j)
			}
			if x.Recovery.State == sim.RecoveryReturned {
				l.Recovery, l.Recovered = new(x.Recovery.Took.Seconds()), true
			}
			list = append(list, l)
		}
	}
	return list
}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func writeJSON(w io.Writer, f file) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(f)
}
