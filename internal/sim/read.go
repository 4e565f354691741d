// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
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
	r := &reader{Report: report}
	s := r.scenario(&fields{reader: r, node: root}, read)
	if len(r.failed) > 0 {
		return nil, r.failed[0]
	}
	if err := report.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// reader reads a scenario.
type reader struct {
	*document.Report

	failed     []error  // of policy files
	phasePaths []string // the field of each phase
}
