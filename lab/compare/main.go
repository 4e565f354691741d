// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Compare measures what stagger costs beside bare gRPC, gRPC's built-in retries, go-grpc-middleware's retry
// and failsafe-go: the same plan for all, in turns in one run.
//
// usage: make compare, or in lab: go run ./compare [flags]
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/stagger-go/stagger/lab/compare/measure"
)

func main() {
	err := command(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		printf(os.Stderr, "compare: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	measure.Plan

	only             *regexp.Regexp
	json             string
	waiting, streams int
}

func parse(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(errs)
	f.IntVar(&o.Rounds, "rounds", 6, "`number` of rounds in a session, at least 1: each has every client once, in an order of chance")
	f.IntVar(&o.Sessions, "sessions", 8, "`number` of sessions, at least 1: each has new servers and connections")
	f.DurationVar(&o.Slice, "slice", 10*time.Millisecond, "about how `long` a client runs in a round; positive")
	f.Uint64Var(&o.Seed, "seed", 1, "`number` that the order is drawn from")
	f.IntVar(&o.waiting, "waiting", 100_000, "`number` of calls that wait at a time, 1 to 1000000: they take about 1 GB for each 100000")
	f.IntVar(&o.streams, "streams", 1000, "`number` of streams that keep 64 KiB at a time, 1 to 10000: they take about 1.2 GB for each 1000")
	f.StringVar(&o.json, "json", "", "write the figures to this `file` too, as JSON")
	only := f.String("only", "", "make the comparisons whose names match this `regexp`; all without it")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q: want flags only", f.Arg(0))
	case o.Sessions < 1:
		return o, fmt.Errorf("-sessions %d: want at least 1", o.Sessions)
	case o.Rounds < 1:
		return o, fmt.Errorf("-rounds %d: want at least 1", o.Rounds)
	case o.Slice <= 0:
		return o, fmt.Errorf("-slice %v: want more than 0", o.Slice)
	case o.waiting < 1 || o.waiting > 1_000_000:
		return o, fmt.Errorf("-waiting %d: want 1 to 1000000", o.waiting)
	case o.streams < 1 || o.streams > 10_000:
		return o, fmt.Errorf("-streams %d: want 1 to 10000", o.streams)
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	return o, nil
}

// result is what came of a section.
type result interface {
	markdown() string
	addTo(f *figures)
}

// section is a comparison with a name, of whatever kind.
type section struct {
	name string
	find func() (result, error)
}

// sections are all that match.
func sections(o options) (some []section) {
	var all []section
	for _, c := range comparisons() {
		all = append(all, section{c.name, func() (result, error) { return c.run(o.Plan) }})
	}
	all = append(all, section{"waiting", func() (result, error) { return waiting(o.waiting) }})
	for _, what := range payloads() {
		all = append(all, section{what.name, func() (result, error) { return replaying(o.streams, what) }})
	}
	for _, one := range all {
		if o.only.MatchString(one.name) {
			some = append(some, one)
		}
	}
	return some
}

// command is the whole program.
func command(args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	some := sections(o)
	if len(some) == 0 {
		return fmt.Errorf("-only %q: matches no comparison", o.only)
	}
	all := figures{Host: thisHost()}
	printf(out, "%s\n\n%s\n", all.Host, legend)
	for _, one := range some {
		began := time.Now()
		found, err := one.find()
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		printf(errs, "%s: %v\n", one.name, time.Since(began).Round(100*time.Millisecond))
		printf(out, "%s\n", found.markdown())
		found.addTo(&all)
	}
	return all.write(o.json)
}
