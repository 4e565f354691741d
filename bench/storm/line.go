// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

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
	Late      float64   `json:"lateP99Ms"` // of the beginnings of calls: the machine's fault
	Target    string    `json:"target"`
	Judgement string    `json:"judgement"` // PASS, MISS, VOID or ""
}

// file is everything that was measured, and of what, for other programs.
type file struct {
	Seed     uint64        `json:"seed"`
	Storms   []stormLine   `json:"storms"`
	Results  []line        `json:"results"`
	Verdicts []verdictLine `json:"verdicts"`
	Series   []seriesLine  `json:"series"`
}

// stormLine is a storm and what it comes over. Of a chain's services all but the last have twice its
// workers. An attempt timeout of 0 is none.
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
	Beside    string `json:"beside,omitempty"` // what it was measured by
	Judgement string `json:"judgement"`
	Why       string `json:"why,omitempty"` // it was missed
}

// seriesLine counts from the beginning of the trouble.
type seriesLine struct {
	Storm    string    `json:"storm"`
	Client   string    `json:"client"`
	At       []float64 `json:"atS"`
	Calls    []float64 `json:"callsPerS"`
	Good     []float64 `json:"goodPerS"`
	Requests []float64 `json:"requestsPerS"` // at the last service
}
