// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim plays fleets of clients, services and their troubles in virtual time, to try a retry policy
// on numbers of one's own before production does.
//
// # What is real, and what is a model
//
// Whether an attempt is followed by another one, when, beside what, and who pays for it, is said by the code
// that the interceptor runs: the engine of internal/attempts, [decision.Policy.Decide], the backoff, and the
// budgets of package budget, from a policy file. The rest is a model: calls arrive at times drawn from a seed, the network delays or loses messages,
// and a backend is some workers with a bounded queue before them, which goes on working for callers who
// have left. Nothing waits: an event leads to the next, so ten minutes of a million clients pass in about
// as many seconds as two million calls take.
//
// A [Scenario] comes from a file, see [Load]; [Scenario.Run] plays it once for each of its variants, and the
// [Result] says what became of the calls. One seed gives one result, on every machine.
//
// What the model leaves out: connections that break and come back, streams, circuit breakers, message sizes,
// the processor time of clients, and hedging by a latency quantile, which is refused.
package sim

import (
	"io"
	"path/filepath"

	"github.com/stagger-go/stagger/internal/document"
)

// Load reads the scenario file at path. Policy files are looked for beside it. See [Parse] for its form and
// its errors.
func Load(path string) (*Scenario, error) {
	data, err := document.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return document.ReadFile(name)
	})
}

// Parse reads a scenario, in YAML or JSON; docs/simulator.md lists the keys. file is the name that diagnostics show, and
// read returns the policy files that the scenario names. The error is a [*document.Error] with all that is wrong
// in the scenario, each with line and column, what was found and what would be right; or that of a policy file.
// Unknown keys, keys that stand twice, and values without their unit are errors.
func Parse(file string, data []byte, read func(name string) ([]byte, error)) (*Scenario, error) {
	report := document.NewReport(file)
	root := document.Parse(report, data, document.Format{Name: "scenario", Key: "services"})
	if root == nil {
		return nil, report.Err()
	}
	var s Scenario
	c := codec{Report: report, read: read}
	document.ReadFields(report, "", root, func(f *document.Fields) { c.scenario(&s, f) })
	if report.ErrorCount() == 0 {
		c.checkScenario(&s)
	}
	if len(c.failed) > 0 {
		return nil, c.failed[0]
	}
	if err := report.Err(); err != nil {
		return nil, err
	}
	return &s, nil
}

// Write writes the scenario as a file that [Parse] reads as the same scenario, without keys that say what holds anyway. Policy
// files are named as they were; a policy that has neither a file nor a text is an error.
func (s *Scenario) Write(w io.Writer) error {
	var c codec
	same := *s
	n := document.WriteFields(func(f *document.Fields) { c.scenario(&same, f) })
	if len(c.failed) > 0 {
		return c.failed[0]
	}
	_, err := io.WriteString(w, n.YAML())
	return err
}

// codec reads or writes a scenario.
type codec struct {
	*document.Report // nil while it writes

	read       func(file string) ([]byte, error)
	failed     []error  // of policy files
	phasePaths []string // the field of each phase
}
