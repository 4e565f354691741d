// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Search looks for scenarios in which retries are worse than none. It draws them from a seed, plays each in the simulator
// with several players, who make the same calls at the same times, and says how often a player is worse than no retries.
//
// usage: make search SEARCH='-seed 7 -n 1000', or in bench: go run ./search -help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/stagger-go/stagger/internal/report/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	seed    uint64
	n       int
	seeds   int
	play    int
	out     string
	against string
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("search", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Uint64Var(&o.seed, "seed", 1, "`number` that the scenarios are drawn from")
	f.IntVar(&o.n, "n", 100, "how `many` scenarios")
	f.IntVar(&o.seeds, "seeds", 1, "how many seeds are played at `least`, 1 to 5; five where a player looks worse")
	f.IntVar(&o.play, "play", -1, "play the scenario with this `index` alone")
	f.StringVar(&o.out, "out", "", "write what became of each scenario into this JSON `file`")
	f.StringVar(&o.against, "against", "", "compare with the JSON `file` that another build has written with -out")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q: want flags only", f.Arg(0))
	case o.n < 1:
		return o, fmt.Errorf("-n %d: must be at least 1", o.n)
	case o.seeds < 1 || o.seeds > seeds:
		return o, fmt.Errorf("-seeds %d: must be 1 to %d", o.seeds, seeds)
	}
	return o, nil
}

// command is the whole program.
func command(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	if o.play >= 0 {
		return playOne(ctx, out, o)
	}
	var before *results
	if o.against != "" {
		if before, err = readResults(o.against, o.seed); err != nil {
			return err
		}
	}
	bar, start := terminal.NewProgress(errs, "search"), time.Now()
	h := hunt{o.seed, o.n, playerNames(), o.seeds, runtime.GOMAXPROCS(0), bar.Set}
	list, err := h.search(ctx)
	bar.Clear()
	if err != nil {
		return err
	}
	print(out, o.seed, list)
	fmt.Fprintf(errs, "%.2f scenarios a second, in %v\n", float64(o.n)/time.Since(start).Seconds(), time.Since(start).Round(time.Second))
	if before != nil {
		compare(out, before.Scenarios, list)
	}
	if o.out == "" {
		return nil
	}
	return (&results{Seed: o.seed, Scenarios: list}).write(o.out)
}

// playOne plays one scenario under every seed, and tells all of it.
func playOne(ctx context.Context, out io.Writer, o options) error {
	d, err := draw(ctx, o.seed, o.play)
	if err != nil {
		return err
	}
	j, err := judge(ctx, o.play, d, playerNames(), seeds)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", d.Words)
	for _, w := range d.Warned {
		fmt.Fprintf(out, "warned: %s\n", w)
	}
	fmt.Fprintf(out, "\n%s", d.Files[defaultPlayer])
	for _, p := range d.Scenario.Phases {
		fmt.Fprintf(out, "%-16s %6v load %.2f, %d faults\n", p.Name, p.Length, p.Load, len(p.Faults))
	}
	fmt.Fprintln(out)
	for _, p := range players {
		fmt.Fprintf(out, "%-20s", p.name)
		for _, r := range j.Players[p.name] {
			fmt.Fprintf(out, " %6.2f %% %5.3f%s", 100*r.Success, r.PerCall, map[bool]string{true: " never"}[r.Never])
		}
		fmt.Fprintln(out)
	}
	return nil
}
