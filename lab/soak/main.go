// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Soak runs a Retrier over loopback for as long as it is told, in chaos of all kinds: servers that fail, hang, cut and
// go away, policies that change and are wrong, modes that are switched, connections and Retriers that are replaced. It
// looks at every answer while that goes on, and at what is left behind in the end, and prints one page.
//
// usage: make soak, or in lab: go run -race ./soak [-for 10m] [-seed 1] [-callers 32] [-write page.md]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	length  time.Duration
	seed    uint64
	callers int
	write   string // file; "" for none
}

// errFaults says that the page lists faults.
var errFaults = errors.New("something was wrong: the page says what")

// command is the whole program.
func command(ctx context.Context, args []string, out io.Writer) error {
	var o options
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.DurationVar(&o.length, "for", 10*time.Minute, "how long, at least 1s")
	f.Uint64Var(&o.seed, "seed", 1, "`number` that chance is drawn from; what meets what is up to the machine")
	f.IntVar(&o.callers, "callers", 32, "`number` of goroutines that call, at least 1")
	f.StringVar(&o.write, "write", "", "write the page to this `file` too, as Markdown")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("argument %q: want flags only", f.Arg(0))
	}
	if o.length < time.Second || o.callers < 1 {
		return fmt.Errorf("-for %v, -callers %d: want at least 1s and 1", o.length, o.callers)
	}
	page, err := soak(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s", page)
	if o.write != "" {
		if err := os.WriteFile(o.write, []byte(page.markdown()), 0o644); err != nil {
			return err
		}
	}
	if page.failed() {
		return errFaults
	}
	return nil
}
