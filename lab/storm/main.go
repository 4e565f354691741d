// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Storm plays outages over real gRPC in memory, against stagger and its peers in parallel. It measures each client, and
// reports whether stagger reached its targets.
//
// usage: make storm, or in lab: go run ./storm [flags]
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	all, err := storms()
	others, elseErr := elsewhereStorms()
	if err = cmp.Or(err, elseErr); err == nil {
		all = append(all, others...)
		err = command(ctx, os.Args[1:], all, os.Stdout, os.Stderr)
	}
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		printf(os.Stderr, "storm: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	markdown, strict bool
	html, json       string // files; "": none
	storms           string
	seed             uint64
	parallel, repeat int
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("storm", flag.ContinueOnError)
	f.SetOutput(errs)
	f.BoolVar(&o.markdown, "markdown", false, "print Markdown")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 unless stagger reaches every target")
	f.StringVar(&o.html, "html", ".tmp/storm.html", "write a report with plots to this `file`; none if empty")
	f.StringVar(&o.json, "json", ".tmp/storm.json", "write the figures, what they were measured of, and their course to this `file`, as JSON; none if empty")
	f.StringVar(&o.storms, "storms", "", "play the storms whose names match this `regexp`; all without it")
	f.Uint64Var(&o.seed, "seed", 1, "`number` that the times of the calls are drawn from")
	f.IntVar(&o.parallel, "parallel", 5, "`number` of clients that are played side by side, at least 1: more take less time, and more processors")
	f.IntVar(&o.repeat, "repeat", 2, "`number` of times that clients are played again whose calls this machine made begin too late, at least 0")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("argument %q: want flags only", f.Arg(0))
	}
	if o.parallel < 1 {
		return o, fmt.Errorf("-parallel %d: want at least 1", o.parallel)
	}
	if o.repeat < 0 {
		return o, fmt.Errorf("-repeat %d: want at least 0", o.repeat)
	}
	return o, nil
}

// errMissed is the error of -strict.
var errMissed = errors.New("stagger missed a target, or the machine was too slow to say (VOID)")

// command runs the whole program.
func command(ctx context.Context, args []string, all []storm, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	some, err := choose(all, o.storms)
	if err != nil {
		return err
	}
	printf(out, "%d storms (seed %d), %d clients at a time. %s\n\n", len(some), o.seed, o.parallel, setting(some))
	outcomes, err := playAll(ctx, o, some, out, errs)
	if err != nil {
		return err
	}
	printf(out, "%s\n", legend)
	printVerdicts(out, outcomes, o.markdown)
	printWorse(out, outcomes, o.markdown)
	if err := export(out, o, outcomes); err != nil {
		return err
	}
	if o.strict && slices.ContainsFunc(outcomes, func(o *outcome) bool { return !o.reached() }) {
		return errMissed
	}
	return nil
}

// setting describes what the storms affect.
func setting(some []storm) string {
	s := some[0]
	return fmt.Sprintf("Each client has %d backends of its own that serve %.0f requests/s\n"+
		"together, in a chain those of each service. Normal load is %g %% of that. A call ends after %g s, if its storm does not say otherwise.",
		s.last().Backends, s.last().Capacity(), 100*s.Phases[0].Load, s.deadline().Seconds())
}

// playAll plays the storms in sequence, and shows each one's table at its end.
func playAll(ctx context.Context, o options, some []storm, out, errs io.Writer) ([]*outcome, error) {
	var outcomes []*outcome
	bar := terminal.NewProgress(errs, "storms")
	defer bar.Clear()
	start, length := time.Now(), planned(some, o)
	for _, s := range some {
		outcome, err := run(ctx, s, s.clients(o.seed), o, func() { bar.Set(time.Since(start).Seconds() / length.Seconds()) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Title, err)
		}
		bar.Clear()
		printOutcome(out, outcome, o.markdown)
		warnLate(out, outcome)
		outcomes = append(outcomes, outcome)
	}
	return outcomes, nil
}
