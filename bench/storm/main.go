// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Storm plays outages over real gRPC in memory, against stagger and its peers side by side, measures
// what each client makes of them, and says whether stagger reached its targets.
//
// usage: make storm, or in bench: go run ./storm [flags]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], storms(), os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		printf(os.Stderr, "storm: %v\n", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	markdown, strict bool
	html, csv, json  string // files; "": none
	storms           string
	seed             uint64
	beside, again    int
}

func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("storm", flag.ContinueOnError)
	f.SetOutput(errs)
	f.BoolVar(&s.markdown, "markdown", false, "print Markdown")
	f.BoolVar(&s.strict, "strict", false, "exit with 1 unless stagger reaches every target")
	f.StringVar(&s.html, "html", ".tmp/storm.html", "write a report with plots to this `file`; none if empty")
	f.StringVar(&s.csv, "csv", ".tmp/storm.csv", "write the figures to this `file`, as CSV; none if empty")
	f.StringVar(&s.json, "json", ".tmp/storm.json", "write the figures, what they were measured of, and their course to this `file`, as JSON; none if empty")
	f.StringVar(&s.storms, "storms", "", "play the storms whose names match this `regexp`; all without it")
	f.Uint64Var(&s.seed, "seed", 1, "`number` that the times of the calls are drawn from")
	f.IntVar(&s.beside, "beside", 5, "`number` of clients that are played side by side, at least 1: more take less time, and more processors")
	f.IntVar(&s.again, "again", 2, "`number` of times that clients are played again whose calls this machine made begin too late, at least 0")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("argument %q: want flags only", f.Arg(0))
	}
	if s.beside < 1 {
		return s, fmt.Errorf("-beside %d: want at least 1", s.beside)
	}
	if s.again < 0 {
		return s, fmt.Errorf("-again %d: want at least 0", s.again)
	}
	return s, nil
}

// errMissed is the verdict of -strict.
var errMissed = errors.New("stagger missed a target, or the machine was too slow to say (VOID)")

// command is the whole program.
func command(ctx context.Context, args []string, all []storm, out, errs io.Writer) error {
	s, err := parse(args, errs)
	if err != nil {
		return err
	}
	some, err := choose(all, s.storms)
	if err != nil {
		return err
	}
	who := contenders(s.seed)
	printf(out, "%d storms over %d clients (seed %d), %d at a time. %s\n\n", len(some), len(who), s.seed, s.beside, setting())
	tallies, err := playAll(ctx, s, some, who, out, errs)
	if err != nil {
		return err
	}
	printf(out, "%s\n", legend)
	printVerdicts(out, tallies, s.markdown)
	printWorse(out, tallies, s.markdown)
	if err := export(out, s, tallies); err != nil {
		return err
	}
	if s.strict && slices.ContainsFunc(tallies, func(t *tally) bool { return !t.reached() }) {
		return errMissed
	}
	return nil
}

// setting says what the storms come over.
func setting() string {
	sh := storm{}.shape()
	return fmt.Sprintf("Each client has %d backends of its own that serve %.0f requests/s\n"+
		"together, in a chain those of each service. Normal load is %g %% of that. A call ends after %g s, if its storm does not say otherwise.",
		sh.backends, sh.capacity(), 100*normal, storm{}.callTimeout().Seconds())
}

// playAll plays the storms one after the other, and shows each one's table when it is over.
func playAll(ctx context.Context, s settings, some []storm, who []contender, out, errs io.Writer) ([]*tally, error) {
	var tallies []*tally
	bar := newProgress(errs, some, len(who), s.beside)
	defer bar.end()
	for _, storm := range some {
		t, err := run(ctx, storm, who, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", storm.name, err)
		}
		bar.clear()
		printTally(out, t, s.markdown)
		warnLate(out, t)
		tallies = append(tallies, t)
	}
	return tallies, nil
}

// choose returns the storms whose names match the pattern.
func choose(all []storm, pattern string) ([]storm, error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-storms: %w", err)
	}
	var some []storm
	for _, s := range all {
		if names.MatchString(s.name) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("-storms %q: matches no storm", pattern)
	}
	return some, nil
}
