// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"

	"github.com/stagger-go/stagger/lab/compare/measure"
)

// figures are all that was found, for other programs.
type figures struct {
	Host   host      `json:"host"`
	Costs  []cost    `json:"costs"`
	Absent []absence `json:"absent"`
	Held   []holding `json:"held"`
}

// cost is what an operation has cost a client.
type cost struct {
	Comparison string            `json:"comparison"`
	Client     string            `json:"client"`
	Base       string            `json:"base"` // the client that Ratio is to
	Goroutines int               `json:"goroutines"`
	Operations int               `json:"operationsPerRound"`
	Nanos      measure.Quartiles `json:"nanos"`
	Ratio      measure.Quartiles `json:"ratio"`
	Processor  measure.Quartiles `json:"processorRatio"` // zero: unknown
	Allocs     float64           `json:"allocations"`
	Bytes      float64           `json:"bytes"`
}

// absence is a client that took no part.
type absence struct {
	Comparison string `json:"comparison"`
	Client     string `json:"client"`
	Why        string `json:"why"`
}

// holding is what a call or a stream of a client holds on to.
type holding struct {
	Comparison string  `json:"comparison"`
	Client     string  `json:"client"`
	Count      int     `json:"count"` // of them at a time
	Bytes      float64 `json:"bytes"`
	Committed  float64 `json:"bytesOnceCommitted,omitempty"` // of streams
	Goroutines float64 `json:"goroutines,omitempty"`         // of calls
}

func (o outcome) addTo(f *figures) {
	for i, costs := range o.costs {
		for _, c := range costs {
			f.Costs = append(f.Costs, cost{o.name, c.Name, o.base, o.goroutines[i], c.Count, c.Time, c.Ratio, c.Processor, c.Allocs, c.Bytes})
		}
	}
	f.Absent = append(f.Absent, o.absent...)
}

func (m memory) addTo(f *figures) { f.Held = append(f.Held, m.held...) }

// write writes the figures to a file; no name, no file.
func (f figures) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
