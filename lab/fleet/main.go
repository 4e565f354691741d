// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Fleet plays 10 to 1,000,000 clients in virtual time that make a thousand calls a second in all, and compares where the
// reserve of their budgets can come from: from each client itself, from nowhere, or from a pool that they lease it from,
// in two ways. Engine, budget and lease are those of production, and Redis answers by the arithmetic of its script.
//
// usage: make fleet, or in lab: go run ./fleet [-clients 100,10000] [-write ../docs/evidence/fleet.md]
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

func main() {
	err := command(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// allSizes are how many clients share the calls.
var allSizes = []int{10, 100, 1_000, 10_000, 100_000, 1_000_000}

// options are the flags.
type options struct {
	sizes []int
	write string // file; "" for none
}

func parse(args []string, errs io.Writer) (options, error) {
	o := options{sizes: allSizes}
	f := flag.NewFlagSet("fleet", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Func("clients", "`numbers` of clients, with commas between; each 1 to 1000000 (default 10 to 1000000)", func(text string) error {
		o.sizes = nil
		for field := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(field)
			if err != nil || n < 1 || n > 1_000_000 {
				return fmt.Errorf("%q: want a number from 1 to 1000000", field)
			}
			o.sizes = append(o.sizes, n)
		}
		return nil
	})
	f.StringVar(&o.write, "write", "", "write the tables into this `file` too, a page in Markdown")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("argument %q: want flags only", f.Arg(0))
	}
	return o, nil
}

// command is the whole program.
func command(args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	bar := terminal.NewProgress(errs, "fleets")
	played, err := playAll(o.sizes, bar.Set)
	bar.Clear()
	if err != nil {
		return err
	}
	for _, t := range tables(o.sizes, played) {
		fmt.Fprintf(out, "%s\n\n", terminal.Table(t, terminal.Style{}, ""))
	}
	if o.write == "" {
		return nil
	}
	return terminal.WriteInto(o.write, "fleet", tables(o.sizes, played))
}
