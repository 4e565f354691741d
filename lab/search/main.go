// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Search looks for scenarios in which retries are worse than none. It draws them from a seed and plays each in the simulator
// with several players, who make the same calls at the same times. It reports how often a player is worse than no retries.
//
// usage: make search SEARCH='-seed 7 -n 1000', or in lab: go run ./search -help
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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/tools/report/terminal"
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
	hunt

	play    int
	player  string
	most    most
	out     string
	against string
	write   string
	page    string
}

// most is the number of scenarios that may be bad for the default player before the search fails.
type most struct {
	set                 bool
	over3, over10, lost int
}

func parse(args []string, errs io.Writer) (options, error) {
	o := options{hunt: hunt{seeds: []uint64{1}, names: playerNames(), parallel: runtime.GOMAXPROCS(0)}}
	f := flag.NewFlagSet("search", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Func("seed", "`numbers` that the scenarios are drawn from, with commas between (default 1)", func(text string) (err error) {
		o.seeds, err = numbers(text)
		return err
	})
	f.IntVar(&o.n, "n", 100, "how `many` scenarios of each seed")
	f.IntVar(&o.least, "plays", 1, "how `often` each scenario is played at least, 1 to 5; five times where a player looks worse")
	f.IntVar(&o.play, "play", -1, "play the scenario with this `index` alone, and tell all of it")
	f.StringVar(&o.player, "player", defaultPlayer, "show the worst of this `player`: "+strings.Join(o.names[1:], ", "))
	f.Func("most", "fail if the default loses more than 3 points in more than `A,B,C` scenarios: A, more than 10 in B, below half or never recovers in C", func(text string) error {
		list, err := numbers(text)
		if err == nil && len(list) != 3 {
			err = fmt.Errorf("%q: want three numbers with commas between", text)
		}
		if err == nil {
			o.most = most{true, int(list[0]), int(list[1]), int(list[2])}
		}
		return err
	})
	f.StringVar(&o.out, "out", "", "write what became of each scenario into this JSON `file`")
	f.StringVar(&o.against, "against", "", "compare with the JSON `file` that another build has written with -out")
	f.StringVar(&o.write, "write", "", "shrink the ten worst, and write them into this `folder` as scenarios for stagger simulate")
	f.StringVar(&o.page, "page", "", "write the tables into this `file` too, a page in Markdown")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q: want flags only", f.Arg(0))
	case !slices.Contains(o.names[1:], o.player):
		return o, fmt.Errorf("-player %q: must be one of %s", o.player, strings.Join(o.names[1:], ", "))
	case o.n < 1:
		return o, fmt.Errorf("-n %d: must be at least 1", o.n)
	case o.least < 1 || o.least > seeds:
		return o, fmt.Errorf("-plays %d: must be 1 to %d", o.least, seeds)
	}
	return o, nil
}

// numbers reads whole numbers separated by commas.
func numbers(text string) (list []uint64, err error) {
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%q: want whole numbers with commas between", text)
		}
		list = append(list, n)
	}
	return list, nil
}

// command runs the whole program.
func command(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	if o.play >= 0 {
		return playOne(ctx, out, o)
	}
	var before []*judged
	if o.against != "" {
		if before, err = readResults(o.against); err != nil {
			return err
		}
	}
	bar, start := terminal.NewProgress(errs, "search"), time.Now()
	o.progress = bar.Set
	list, err := o.search(ctx)
	bar.Clear()
	if err != nil {
		return err
	}
	show(out, list, o)
	fmt.Fprintf(errs, "%.2f scenarios a second, in %v\n", float64(len(list))/time.Since(start).Seconds(), time.Since(start).Round(time.Second))
	if before != nil {
		compare(out, before, list)
	}
	return errors.Join(o.store(ctx, out, list), o.most.check(list))
}

// store writes the requested files.
func (o *options) store(ctx context.Context, out io.Writer, list []*judged) error {
	var errs []error
	if o.write != "" {
		errs = append(errs, writeWorst(ctx, out, o.write, list, o.player, 10))
	}
	if o.out != "" {
		errs = append(errs, writeResults(o.out, list))
	}
	if o.page != "" {
		errs = append(errs, terminal.WriteInto(o.page, "search", tables(list)))
	}
	return errors.Join(errs...)
}

// check reports whether there are too many bad scenarios.
func (m most) check(list []*judged) error {
	if !m.set {
		return nil
	}
	s, lost := count(list, defaultPlayer, every), 0
	for _, j := range list {
		lost += one(j.half(defaultPlayer) || j.never(defaultPlayer))
	}
	if s.Over3 > m.over3 || s.Over10 > m.over10 || lost > m.lost {
		return fmt.Errorf("of %d scenarios, the default loses more than 3 points in %d, more than 10 in %d, and is below half or never recovers in %d; want at most %d, %d and %d",
			len(list), s.Over3, s.Over10, lost, m.over3, m.over10, m.lost)
	}
	return nil
}

// playOne plays one scenario under every seed, and shows all results.
func playOne(ctx context.Context, out io.Writer, o options) error {
	d, err := draw(ctx, o.seeds[0], o.play)
	if err != nil {
		return err
	}
	j, err := judge(ctx, d, o.names, seeds)
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
