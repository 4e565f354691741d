// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim simulates fleets of clients and services, with faults, in virtual time. Use it to try a retry policy with your
// own numbers before production.
//
// # What is real, and what is a model
//
// The interceptor's own code decides whether and when an attempt is retried or hedged, and which budget pays: the engine of
// internal/attempts, [decision.Decide], the backoff, and package budget, configured by a policy file. The rest is a
// model. Calls arrive at times drawn from a seed. The network delays or loses messages. A backend is some workers behind a
// bounded queue, which keeps working on abandoned requests. Nothing waits in real time: ten minutes of a million clients
// take about as many seconds as two million calls do.
//
// A [Scenario] comes from a file, see [Load]. [Scenario.Run] plays it once for each of its variants. The [Result] has the
// outcome of the calls. One seed gives one result, on every machine.
//
// The model leaves out connections that break and return, streams, circuit breakers, message sizes, the processor time of
// clients, and hedging by a latency quantile, which is refused.
package sim

import (
	"path/filepath"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Load reads the scenario file at path, and its policy files from the same folder. See [Parse] for its form and errors.
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

// Parse reads a scenario, in YAML or JSON; cmd/stagger/scenarios/README.md lists the keys. file is the name that diagnostics show. read
// returns a policy file that the scenario names. The error is a [*document.Error] with all errors in the scenario, each with
// line, column, value and remedy; or that of a policy file. Unknown keys, duplicate keys, and values without a unit are
// errors.
func Parse(file string, data []byte, read func(name string) ([]byte, error)) (*Scenario, error) {
	report := document.NewReport(file)
	root := document.Parse(report, data, document.Format{Name: "scenario", Key: "services"})
	if root == nil {
		return nil, report.Err()
	}
	var s Scenario
	c := codec{Report: report, read: read}
	readFields(report, "", root, func(f *fields) { c.scenario(&s, f) })
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

// codec reads a scenario.
type codec struct {
	*document.Report

	read   func(file string) ([]byte, error)
	failed []error // of policy files
}
