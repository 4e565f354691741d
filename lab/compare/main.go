// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Compare measures the cost of stagger next to bare gRPC, gRPC's built-in retries, go-grpc-middleware's retry and
// failsafe-go, with the same plan, in turns. Processes differ by a few percent whatever they compare. So it starts many
// short ones, computes ratios within each, and shows medians and quartiles over all of them.
//
// usage: make compare, or in lab: go run ./compare [flags]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
)

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
		_ = os.Setenv("GOMAXPROCS", "1") // for the processes that it starts
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the calls have no deadline, of which each client would warn
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	plan

	processes int
	only      regexp.Regexp
	waiting   int
	one       string // "": starts processes
	write     string // folder of the repository; "": nothing is written
}

func parse(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(errs)
	f.IntVar(&o.processes, "processes", 16, "`number` of processes, at least 1")
	f.IntVar(&o.rounds, "rounds", 40, "`number` of rounds in each process, at least 1: each has every client once, in an order of chance")
	f.DurationVar(&o.slice, "slice", time.Millisecond, "about how `long` a client runs in a round; positive")
	f.IntVar(&o.waiting, "waiting", 100_000, "`number` of calls that wait at a time, 1 to 1000000: they take about 1 GB for each 100000")
	f.StringVar(&o.one, "one", "", "measure the `table` of this name in this process, and print its rows as JSON")
	f.StringVar(&o.write, "write", "", "write tables and figures into the pages of the repository in this `folder`")
	f.TextVar(&o.only, "only", regexp.MustCompile(""), "make the tables whose names match this `regexp`; all without it")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.processes < 1 || o.rounds < 1 || o.slice <= 0 || o.waiting < 1 || o.waiting > mostWaiting {
		return o, fmt.Errorf("%q: want flags only, at least one process, round and waiting call, at most %d of these, and a positive slice", args, mostWaiting)
	}
	o.meter = process{time.Now()}
	return o, nil
}

// tables returns the matching tables that this process measures, or starts others for.
func tables(o options) []table {
	compared := comparisons()
	all := make([]table, 0, len(compared)+1)
	for _, c := range compared {
		all = append(all, c.table())
	}
	all = append(all, memory(o))
	return slices.DeleteFunc(all, func(t table) bool { return !o.only.MatchString(t.name) || o.one != "" && o.one != t.name })
}

// command runs the whole program.
func command(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	all := tables(o)
	if len(all) == 0 {
		return fmt.Errorf("no table is named %q", cmp.Or(o.one, o.only.String()))
	}
	if o.one != "" {
		rows, err := all[0].rows(o)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(rows)
	}
	fmt.Fprintf(out, "%s\n\n", host())
	names, shown := []string{}, []report.Table{}
	found, err := o.measure(ctx, all, errs)
	if err != nil {
		return err
	}
	for _, t := range all {
		names, shown = append(names, t.name), append(shown, t.found(found[t.name]))
	}
	held, above := check(all, found)
	if len(held.Rows) > 0 {
		names, shown = append(names, boundsName), append(shown, held)
	}
	for i, t := range shown {
		fmt.Fprintf(out, "### %s\n\n%s:\n\n%s\n\n", names[i], t.Title, terminal.Markdown(t))
	}
	if o.write != "" {
		above = errors.Join(above, write(o.write, names, shown))
	}
	return above
}

// measure lets processes measure the tables, one process after the other, each a single table: it does not depend on what others
// leave in memory. It returns the results of all processes by table.
func (o options) measure(ctx context.Context, all []table, errs io.Writer) (map[string][][]row, error) {
	found, began := make(map[string][][]row), time.Now()
	bar := terminal.NewProgress(errs, "compare")
	defer bar.Clear()
	for n := range o.processes {
		for i, t := range all {
			if t.once && n > 0 {
				continue
			}
			rows, err := o.start(ctx, t.name, errs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			found[t.name] = append(found[t.name], rows)
			bar.Set(float64(n*len(all)+i+1) / float64(o.processes*len(all)))
		}
	}
	fmt.Fprintf(errs, "measured in %v\n", time.Since(began).Round(time.Second))
	return found, nil
}

// start starts a process that measures a table.
func (o options) start(ctx context.Context, table string, errs io.Writer) (rows []row, err error) {
	c := exec.CommandContext(ctx, os.Args[0], "-one", table,
		"-rounds", strconv.Itoa(o.rounds), "-slice", o.slice.String(), "-waiting", strconv.Itoa(o.waiting))
	c.Stderr = errs
	text, err := c.Output()
	if err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(text, &rows)
}

// host describes the machine.
func host() string {
	parts := []string{time.Now().UTC().Format(time.DateOnly)}
	parts = append(parts, fmt.Sprintf("%s, %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)))
	build, _ := debug.ReadBuildInfo()
	for _, path := range []string{"google.golang.org/grpc", "github.com/grpc-ecosystem/go-grpc-middleware/v2", "github.com/failsafe-go/failsafe-go"} {
		for _, m := range build.Deps {
			if m.Path == path {
				parts = append(parts, m.Path+" "+m.Version)
			}
		}
	}
	return strings.Join(parts, ", ")
}
