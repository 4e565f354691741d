// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Search draws scenarios from a seed, and plays each in the simulator with several players, who make the same calls at the same times.
// In some it looks for scenarios in which retries are worse than none. In the others, the servers have room and one fault that
// retries can mend, and it reports how much help each player loses against the best of others.
//
// usage: make search SEARCH='-seed 7 -n 1000 -help-set 300', or in lab: go run ./search -help
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
)

func main() {
	debug.SetGCPercent(800) // plays are short and leave much garbage; collecting it all the time takes a third of the time
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
	var mostLost []float64
	f.Func("seed", "the `numbers` that the scenarios are drawn from, with commas between", numbers(&from, parseSeed))
	f.Func("most", "fail if the default loses over 3 points in more than A of `A,B,C` scenarios, over 10 in B, half or for ever in C",
		numbers(&most, parseSeed))
	f.Func("most-lost", "fail if the default loses over 3 points of help in more than A % of scenarios of `A,B`, or over B "+
		"points on average",
		numbers(&mostLost, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }))
	sets := []struct {
		of set
		n  *int
	}{
		{harm, f.Int("n", 100, "how `many` scenarios of each seed in which retries may do harm; 0: none")},
		{harmOld, f.Int("old", 0, "how `many` such scenarios in which all processes have lived for long")},
		{loops, f.Int("loops", 0, "how `many` such scenarios in which an overload feeds itself")},
		{help, f.Int("help-set", 0, "how `many` scenarios of each seed in which retries can help")},
		{helpOld, f.Int("help-old", 0, "how `many` such scenarios in which all processes have lived for long")},
	}
	names := f.String("players", strings.Join(allPlayers, ","), "`who` plays, beside those who are needed, with commas between")
	folder := f.String("write", "", "shrink the ten worst of each set, and write them into this `folder` as scenarios for "+
		"stagger simulate")
	page := f.String("page", "", "write the table that decides into this `file`, a page in Markdown")
	written := f.String("results", "", "write all tables into this `file`, in Markdown")
	keys := f.Bool("keys", false, "play the default without each number of its bucket, and write their tables into -results instead")
	same := f.String("same", "", "compare the first scenarios of the first seed with this `file`, which -results has written")
	each := f.String("each", "", "write what each scenario gave into this `file`, one JSON object a line")
	if err := f.Parse(args); err != nil {
		return err
	}
	all, least := 0, 0
	for _, s := range sets {
		all, least = all+*s.n, min(least, *s.n)
	}
	if f.NArg() > 0 || least < 0 || all == 0 || len(from) == 0 ||
		len(most) != 0 && len(most) != 3 || len(mostLost) != 0 && len(mostLost) != 2 {
		return fmt.Errorf("%q: want at least one -seed, a scenario, three numbers for -most, two for -most-lost, and no arguments", args)
	}
	chosen := strings.Split(*names, ",")
	if *keys {
		chosen = append([]string{floor, grpcThrottled, defaultPlayer}, withoutKeys...)
	}
	for _, name := range chosen {
		if !slices.Contains(allPlayers, name) && bucketOf(name) == nil {
			return fmt.Errorf("-players: %q: want some of %q, or numbers of a bucket as slowCost=2", name, allPlayers)
		}
	}
	found := results{}
	for _, s := range sets {
		bar := terminal.NewProgress(errs, string(s.of))
		list, err := search(ctx, s.of, from, *s.n, chosen, bar.Set)
		bar.Clear()
		if err != nil {
			return err
		}
		found[s.of] = list
	}
	tables := found.tables(chosen)
	var err error
	for _, t := range tables {
		fmt.Fprintf(out, "%s\n\n", terminal.Table(t, terminal.Style{}, ""))
	}
	if slices.Contains(chosen, defaultPlayer) {
		for _, s := range sets {
			err = errors.Join(err, showWorst(ctx, out, *folder, found[s.of], defaultPlayer))
		}
		err = errors.Join(err, checkBounds(found.all(false), found.all(true), most, mostLost))
	}
	part := found.part().tables([]string{defaultPlayer})
	part[0].Title = fmt.Sprintf("of seed %d, the first scenarios: ", from[0]) + part[0].Title
	switch {
	case *written != "" && *keys:
		err = errors.Join(err, terminal.WriteInto(*written, "keys", tables))
	case *written != "":
		err = errors.Join(err, terminal.WriteInto(*written, "search", tables), terminal.WriteInto(*written, "part", part))
	}
	if *page != "" {
		err = errors.Join(err, terminal.WriteInto(*page, "search", []report.Table{deciding(found[harm], found[help], chosen)}))
	}
	if *same != "" {
		different, wrong := terminal.Differences(*same, "part", part, nil)
		err = errors.Join(err, wrong)
		for _, line := range different {
			err = errors.Join(err, fmt.Errorf("%s: a rule has changed; write all tables as docs/evidence/search.md says", line))
		}
	}
	if *each != "" {
		err = errors.Join(err, writeEach(*each, append(found.all(false), found.all(true)...)))
	}
	return err
}

// results are those of each set.
type results map[set][]*judged

// all returns the results of all sets with one question.
func (r results) all(helps bool) (list []*judged) {
	for _, s := range []set{harm, harmOld, loops, help, helpOld} {
		if s.helps() == helps {
			list = append(list, r[s]...)
		}
	}
	return list
}

// part returns the first scenarios, which are compared with every run of CI.
func (r results) part() results {
	some := results{}
	for s, n := range map[set]int{harm: 150, harmOld: 40, loops: 40, help: 100, helpOld: 20} {
		some[s] = r[s][:min(n, len(r[s]))]
	}
	return some
}

// tables returns how each player does: all figures of two sets, and by the kinds of scenarios.
func (r results) tables(names []string) (list []report.Table) {
	if len(r[harm])+len(r[help]) > 0 {
		list = append(list, table(r[harm], r[help], names))
	}
	for _, helps := range []bool{false, true} {
		if of := r.all(helps); len(of) > 0 {
			list = append(list, tableOfKinds(helps, of, names))
		}
	}
	return list
}

// checkBounds compares the default with the bounds of the two questions, if there are any.
func checkBounds(harms, helps []*judged, most []uint64, mostLost []float64) (err error) {
	s := sumHarm(harms, defaultPlayer)
	for i, n := range []uint64{s.over[1], s.over[2], s.half + s.never} {
		if most != nil && n > most[i] {
			err = errors.Join(err, fmt.Errorf("of %d scenarios, the default loses too much in too many: %+v; want at most %d",
				len(harms), s, most))
		}
	}
	lost := sumHelp(helps, defaultPlayer)
	for i, points := range []float64{100 * lost.over[1], 100 * lost.mean} {
		if mostLost != nil && points > mostLost[i] {
			err = errors.Join(err, fmt.Errorf("of %d scenarios, the default loses too much help: %+v; want at most %v",
				len(helps), lost, mostLost))
		}
	}
	return err
}

// writeEach writes what each scenario gave.
func writeEach(path string, list []*judged) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	for _, j := range list {
		if err := enc.Encode(j); err != nil {
			return err
		}
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}

func parseSeed(text string) (uint64, error) { return strconv.ParseUint(text, 10, 63) }

// numbers returns a flag of numbers separated by commas.
func numbers[T any](list *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		for field := range strings.SplitSeq(text, ",") {
			n, err := parse(field)
			if err != nil {
				return err
			}
			*list = append(*list, n)
		}
		return nil
	}
}

// table returns two sets: how often each player is worse than no retries, and how much help it loses.
func table(harms, helps []*judged, names []string) report.Table {
	t := report.Table{Title: fmt.Sprintf("harm in %d scenarios; lost help in %d", len(harms), len(helps)), Columns: []string{
		"player", "worse by > 1", "> 3", "> 10 points", "> 3, %", "below half", "never recover", "gain, points", "requests a call",
		"lost help > 1, %", "> 3", "> 10", "> 30", "mean, points", "requests a call",
	}}
	inHarm, inHelp := playersOf(harm, names), playersOf(help, names)
	for _, name := range inOrder(append(inHelp, inHarm...)) {
		row := []string{name}
		if len(harms) > 0 && slices.Contains(inHarm, name) {
			s := sumHarm(harms, name)
			row = append(row, cells("%d|%d|%d|%.1f|%d|%d|%+.2f|%.3f", s.over[0], s.over[1], s.over[2],
				100*float64(s.over[1])/float64(len(harms)), s.half, s.never, 100*s.gain, s.perCall)...)
		} else {
			row = append(row, "", "", "", "", "", "", "", "")
		}
		if len(helps) > 0 && slices.Contains(inHelp, name) {
			s := sumHelp(helps, name)
			row = append(row, cells("%.1f|%.1f|%.1f|%.1f|%.2f|%.3f",
				100*s.over[0], 100*s.over[1], 100*s.over[2], 100*s.over[3], 100*s.mean, s.perCall)...)
		} else {
			row = append(row, "", "", "", "", "", "")
		}
		if strings.Join(row[1:], "") != "" {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// deciding returns the table of docs/evidence/search.md: in how many % of the scenarios each player loses over 3 and over 10 points, the
// mean gain, and the same of the help that it loses.
func deciding(harms, helps []*judged, names []string) report.Table {
	t := report.Table{Title: fmt.Sprintf("Harm in %d scenarios; lost help in %d", len(harms), len(helps)), Columns: []string{
		"client", "worse by > 3 points, %", "> 10 points, %", "gain, points", "requests a call", "lost help > 3 points, %", "mean, points", "requests a call",
	}}
	inHarm, inHelp := playersOf(harm, names), playersOf(help, names)
	for _, name := range inOrder(append(inHelp, inHarm...)) {
		row := append([]string{name}, make([]string, len(t.Columns)-1)...)
		if len(harms) > 0 && slices.Contains(inHarm, name) {
			s, percent := sumHarm(harms, name), 100/float64(len(harms))
			copy(row[1:], cells("%.1f|%.1f|%+.2f|%.2f", percent*float64(s.over[1]), percent*float64(s.over[2]), 100*s.gain, s.perCall))
		}
		if len(helps) > 0 && slices.Contains(inHelp, name) {
			s := sumHelp(helps, name)
			copy(row[5:], cells("%.1f|%.2f|%.2f", 100*s.over[1], 100*s.mean, s.perCall))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// tableOfKinds returns the sets with one question by the kind of scenario: in how many % of the scenarios a player loses over 3 and over 10
// points, and the mean gain, or loss of help.
func tableOfKinds(helps bool, list []*judged, names []string) report.Table {
	t := report.Table{Title: "worse by over 3 and over 10 points, % of the scenarios; gain, points"}
	of := harm
	if helps {
		t.Title, of = "lost help over 3 and over 10 points, % of the scenarios; mean, points", help
	}
	players := playersOf(of, names)
	t.Columns = append([]string{"scenarios", "n"}, players...)
	for _, kind := range rows(helps) {
		some := ofKind(list, kind)
		if len(some) == 0 {
			continue
		}
		row := []string{kind, strconv.Itoa(len(some))}
		for _, name := range players {
			if helps {
				s := sumHelp(some, name)
				row = append(row, fmt.Sprintf("%.1f, %.1f; %.2f", 100*s.over[1], 100*s.over[2], 100*s.mean))
				continue
			}
			s, percent := sumHarm(some, name), 100/float64(len(some))
			row = append(row, fmt.Sprintf("%.1f, %.1f; %+.2f", percent*float64(s.over[1]), percent*float64(s.over[2]), 100*s.gain))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func cells(format string, values ...any) []string {
	return strings.Split(fmt.Sprintf(format, values...), "|")
}

// showWorst shows the ten scenarios in which a player loses most. With a folder, it shrinks them, and writes a file for each.
func showWorst(ctx context.Context, out io.Writer, folder string, list []*judged, player string) error {
	sorted := slices.SortedStableFunc(slices.Values(list), func(a, b *judged) int { return cmp.Compare(b.loss(player), a.loss(player)) })
	for _, j := range sorted[:min(10, len(sorted))] {
		if j.loss(player) <= suspicious {
			break
		}
		fmt.Fprintf(out, "%v, seed %d, scenario %d: %.1f points: %s\n", j.Set, j.Seed, j.Index, 100*j.loss(player), j.About)
		if folder == "" {
			continue
		}
		s, loss, err := shrink(ctx, j, player)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  shrunk: %.1f points: %s\n", 100*loss, s.About)
		path := filepath.Join(folder, fmt.Sprintf("%v-%d-%d.json", strings.ReplaceAll(string(j.Set), ", ", "-"), j.Seed, j.Index))
		if err := errors.Join(os.MkdirAll(folder, 0o750), os.WriteFile(path, s.file, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
