// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// sketch are the numbers of --new.
type sketch struct {
	is      bool
	rate    float64
	latency time.Duration
	workers int
}

// given says which of the numbers are there.
func (k *sketch) given() bool { return k.rate != 0 || k.latency != 0 || k.workers != 0 }

// create writes a scenario for a policy file.
func (o *options) create(cmd *cobra.Command) error {
	s, err := o.sketched(cmd)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		return err
	}
	file := s.Policies["own"]
	if _, err := sim.Parse("the new scenario", []byte(text.String()), func(string) ([]byte, error) { return []byte(file.Text), nil }); err != nil {
		return err
	}
	return cli.WriteFile(cmd, o.output, []byte(text.String()))
}

// sketched is the scenario. It names the policy file from where the scenario will stand.
func (o *options) sketched(cmd *cobra.Command) (*sim.Scenario, error) {
	data, err := cli.ReadFile(cmd, o.policy)
	if err != nil {
		return nil, err
	}
	p, err := sim.ReadPolicy(o.policy, data)
	if err != nil {
		return nil, err
	}
	if o.output != "" && !filepath.IsAbs(o.policy) {
		if p.File, err = beside(o.output, o.policy); err != nil {
			return nil, err
		}
	}
	s, err := sim.Sketch{
		Policy: p, Method: methodPath(o.method), Rate: o.sketch.rate, Latency: o.sketch.latency, Workers: o.sketch.workers, Processes: o.clients,
	}.Scenario()
	if err != nil {
		return nil, cli.UsageErrorf("--new: %v", err)
	}
	return s, nil
}

// beside is the path of a file as seen from another one.
func beside(from, file string) (string, error) {
	from, errFrom := filepath.Abs(from)
	file, errFile := filepath.Abs(file)
	path, err := filepath.Rel(filepath.Dir(from), file)
	return path, cmp.Or(errFrom, errFile, err)
}
