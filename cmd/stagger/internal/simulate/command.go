// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate is "stagger simulate": it plays scenarios in virtual time, and shows the results.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/cmd/stagger/scenarios"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/policy"
)

// options are the command line.
type options struct {
	scenario string
	seed     uint64
	clients  int
	policy   string
	method   string
	list     bool
	format   string
}

// Command returns "stagger simulate".
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "simulate [SCENARIO]",
		Short: "Simulate an outage of a fleet of clients, in virtual time, with your policy",
		Long: `Simulate an outage of a fleet of clients, in virtual time, with your policy.

SCENARIO is a file, or the name of a built-in one (--list). It describes clients,
services, a network and faults over time; cmd/stagger/scenarios/README.md lists its
keys. The interceptor's own code decides about retries and budgets. One seed gives
one result.`,
		Example: `  stagger simulate --list
  stagger simulate overload
  stagger simulate overload --policy retry.yaml --method acme.orders.v1.OrderService/GetOrder
  stagger simulate my/outage.yaml --format json > outage.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.scenario = args[0]
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return builtIn(), cobra.ShellCompDirectiveDefault
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.seed, "seed", 0, "`number` that seeds all random draws (default: the scenario's)")
	f.IntVar(&o.clients, "clients", 0, "`number` of clients of each fleet, which share its calls (default: the scenario's)")
	f.StringVar(&o.policy, "policy", "", "also run it with the policies of this `file`")
	f.StringVar(&o.method, "method", "", "with --policy: SERVICE/METHOD, the `name` of the method to look up in the file (default: the scenario's)")
	f.BoolVar(&o.list, "list", false, "list the built-in scenarios")
	cli.EnumFlag(cmd, &o.format, "format", "form of the result", "text", "json")
	return cmd
}

// check returns an error if arguments and flags do not go together.
func (o *options) check() error {
	switch {
	case (o.scenario != "") == o.list:
		return cli.UsageErrorf("want one of: a SCENARIO (see --list), or --list")
	case o.clients < 0:
		return cli.UsageErrorf("--clients %d: must be at least 1", o.clients)
	case o.method != "" && o.policy == "":
		return cli.UsageErrorf("--method %q: is for the file of --policy", o.method)
	default:
		return nil
	}
}

func (o *options) run(ctx context.Context, out, errs io.Writer) error {
	if o.list {
		return list(out)
	}
	s, err := o.load()
	if err != nil {
		return err
	}
	r, err := play(ctx, s, sim.Options{Seed: o.seed, Clients: o.clients}, errs)
	if err != nil {
		return err
	}
	if o.format == "json" {
		return cli.WriteJSON(out, r)
	}
	var text strings.Builder
	Write(&text, terminal.StyleOf(out), r)
	_, err = io.WriteString(out, text.String())
	return err
}

// load reads the scenario, and the additional policy.
func (o *options) load() (*sim.Scenario, error) {
	s, err := open(o.scenario)
	if err != nil || o.policy == "" {
		return s, err
	}
	set, err := policy.Load(o.policy)
	if err != nil {
		return nil, err
	}
	return s.With(filepath.Base(o.policy), set, methodPath(o.method))
}

// methodPath returns a method's name with a slash, as in gRPC.
func methodPath(method string) string {
	if method == "" || method[0] == '/' {
		return method
	}
	return "/" + method
}

// open reads a scenario from a file or, if that does not exist, a built-in one.
func open(name string) (*sim.Scenario, error) {
	s, err := sim.Load(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if _, missing := os.Stat(name); missing == nil {
		return nil, err // a policy file does not exist
	}
	data, missing := scenarios.Files.ReadFile(name + ".yaml")
	if missing != nil {
		return nil, cli.UsageErrorf("%s: is not a file or a built-in scenario; those are %s", name, strings.Join(builtIn(), ", "))
	}
	return sim.Parse(name+".yaml", data, scenarios.Files.ReadFile)
}

// builtIn returns the names of the built-in scenarios.
func builtIn() []string {
	files, _ := fs.Glob(scenarios.Files, "*.yaml") // the pattern is valid
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

func list(w io.Writer) error {
	t := report.Table{Columns: []string{"scenario", "what it shows"}}
	for _, name := range builtIn() {
		s, err := open(name)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, []string{name, s.Title})
	}
	_, err := fmt.Fprintln(w, render(terminal.StyleOf(w), t))
	return err
}
