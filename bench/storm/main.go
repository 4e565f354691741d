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
	"time"
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
	markdown, strict  bool
	csv, json, storms string
	seed              uint64
	beside            int
}

func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("storm", flag.ContinueOnError)
	f.SetOutput(errs)
	f.BoolVar(&s.markdown, "markdown", false, "print Markdown")
	f.BoolVar(&s.strict, "strict", false, "exit with 1 unless stagger reaches every target")
	f.StringVar(&s.csv, "csv", "", "write the figures to this `file` too, as CSV")
	f.StringVar(&s.json, "json", "", "write the figures to this `file` too, as JSON")
	f.StringVar(&s.storms, "storms", "", "play the storms whose names match this `regexp`; all without it")
	f.Uint64Var(&s.seed, "seed", 1, "`number` that the times of the calls are drawn from")
	f.IntVar(&s.beside, "beside", 5, "`number` of clients that are played side by side, at least 1: more take less time, and more processors")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("argument %q: want flags only", f.Arg(0))
	}
	if s.beside < 1 {
		return s, fmt.Errorf("-beside %d: want at least 1", s.beside)
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
	sh, who := newShape(), contenders(s.seed)
	printf(out, "%d storms over %d clients (seed %d), %d at a time, each with %d backends of its own that serve %.0f requests/s\n"+
		"together. Normal load is %g %% of that. A call ends after %g s at the latest.\n\n",
		len(some), len(who), s.seed, s.beside, sh.backends, sh.capacity(), 100*normal, callTimeout.Seconds())
	var reports []report
	reached := true
	for _, storm := range some {
		began := time.Now()
		r, err := run(ctx, storm, sh, who, s.seed, s.beside)
		if err != nil {
			return fmt.Errorf("%s: %w", storm.name, err)
		}
		printf(errs, "%s: played in %v\n", storm.name, time.Since(began).Round(time.Second))
		printReport(out, r, s.markdown)
		warnLate(out, r)
		reports = append(reports, r)
		reached = reached && r.reached()
	}
	printf(out, "%s", legend)
	if err := export(s, lines(reports)); err != nil {
		return err
	}
	if s.strict && !reached {
		return errMissed
	}
	return nil
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

// export writes the files that were asked for.
func export(s settings, list []line) error {
	return errors.Join(writeFile(s.csv, list, writeCSV), writeFile(s.json, list, writeJSON))
}

func writeFile(path string, list []line, write func(io.Writer, []line) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	return errors.Join(write(f, list), f.Close())
}
