// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Search looks for scenarios in which retries are worse than none. It draws them from a seed and plays each in the simulator
// with several players, who make the same calls at the same times. It reports how often a player is worse than no retries.
//
// usage: make search SEARCH='-seed 7 -n 1000', or in lab: go run ./search -help
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

func main() {
	if err := command(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// command runs the whole program.
func command(ctx context.Context, args []string, out, errs io.Writer) error {
	f := flag.NewFlagSet("search", flag.ContinueOnError)
	f.SetOutput(errs)
	var from, most []uint64
	f.Func("seed", "the `numbers` that the scenarios are drawn from, with commas between", numbers(&from))
	f.Func("most", "fail if the default loses over 3 points in more than A of `A,B,C` scenarios, over 10 in B, half or for ever in C",
		numbers(&most))
	n := f.Int("n", 100, "how `many` scenarios of each seed")
	folder := f.String("write", "", "shrink the ten worst, and write them into this `folder` as scenarios for stagger simulate")
	page := f.String("page", "", "write the table into this `file` too, a page in Markdown")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || *n < 1 || len(from) == 0 || len(most) != 0 && len(most) != 3 {
		return fmt.Errorf("%q: want at least one -seed, a -n of at least 1, three numbers for -most, and no arguments", args)
	}
	bar := terminal.NewProgress(errs, "search")
	list, err := search(ctx, from, *n, players, bar.Set)
	bar.Clear()
	if err != nil {
		return err
	}
	t := table(list)
	fmt.Fprintf(out, "%s\n\n", terminal.Table(t, terminal.Style{}, ""))
	err = showWorst(ctx, out, *folder, list, defaultPlayer)
	if *page != "" {
		err = errors.Join(err, terminal.WriteInto(*page, "search", []report.Table{t}))
	}
	s := count(list, defaultPlayer)
	for i, n := range []uint64{s.over[1], s.over[2], s.half + s.never} {
		if most != nil && n > most[i] {
			err = errors.Join(err, fmt.Errorf("of %d scenarios, the default loses too much in too many: %+v; want at most %d", len(list), s, most))
		}
	}
	return err
}

// numbers returns a flag of whole numbers separated by commas.
func numbers(list *[]uint64) func(string) error {
	return func(text string) error {
		for field := range strings.SplitSeq(text, ",") {
			n, err := strconv.ParseUint(field, 10, 63)
			if err != nil {
				return err
			}
			*list = append(*list, n)
		}
		return nil
	}
}

// table returns how often each player is worse than no retries.
func table(list []*judged) report.Table {
	t := report.Table{Title: fmt.Sprintf("%d scenarios", len(list)), Columns: []string{
		"player", "worse by > 1", "> 3", "> 10 points", "> 3, %", "below half", "never recover", "gain, points", "requests a call",
	}}
	for _, name := range players {
		s := count(list, name)
		t.Rows = append(t.Rows, strings.Split(fmt.Sprintf("%s|%d|%d|%d|%.1f|%d|%d|%+.2f|%.3f", name, s.over[0], s.over[1], s.over[2],
			100*float64(s.over[1])/float64(len(list)), s.half, s.never, 100*s.gain, s.perCall), "|"))
	}
	return t
}

// showWorst shows the ten scenarios in which a player loses most. With a folder, it shrinks them, and writes a file for each.
func showWorst(ctx context.Context, out io.Writer, folder string, list []*judged, player string) error {
	sorted := slices.SortedStableFunc(slices.Values(list), func(a, b *judged) int { return cmp.Compare(b.loss(player), a.loss(player)) })
	for _, j := range sorted[:min(10, len(sorted))] {
		if j.loss(player) <= suspicious {
			break
		}
		fmt.Fprintf(out, "seed %d, scenario %d: %.1f points worse than no retries: %s\n", j.seed, j.index, 100*j.loss(player), j.about)
		if folder == "" {
			continue
		}
		s, loss, err := shrink(ctx, j.seed, j.index, player)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  shrunk: %.1f points: %s\n", 100*loss, s.About)
		path := filepath.Join(folder, fmt.Sprintf("%d-%d.json", j.seed, j.index))
		if err := errors.Join(os.MkdirAll(folder, 0o750), os.WriteFile(path, s.file, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
