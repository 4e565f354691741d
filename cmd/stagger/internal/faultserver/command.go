// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package faultserver is "stagger faultserver": a gRPC server that fails on demand, for clients in any language.
package faultserver

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
)

const help = `Run a gRPC server that answers every method of every service as a script says: with
errors, pushback, delays, silence, half a stream, a cut connection, an overload. Clients
in any language can be tested against it.

The script is a file (--script), or comes from the test itself, over HTTP (--control).
Without any, everything is answered OK with an empty message. Messages are bytes, or JSON
for an API that the server knows (--descriptors).

    scripts:
      - method: /acme.orders.v1.OrderService/GetOrder   # or /acme.orders.v1.OrderService/*, or "*"
        steps:
          - {fail: {code: UNAVAILABLE}, times: 2}       # the first two attempts
          - {replies: [{json: {id: "7"}}]}              # from then on

All that a script can say is described in proto/stagger/faultserver/v1/script.proto. The
server has gRPC's reflection and health services.

A test controls the server over HTTP, on an address of its own, which the first line of
the output names:

    PUT    /scripts   the body is a script file that gives methods new scripts
    POST   /scripts   the body is one that appends steps to the scripts of methods
    DELETE /scripts   takes the script of ?method= away
    GET    /attempts  what the server has seen, in JSON: ?method=, ?after= (a serial),
                      ?requests=true, ?wait=10s&events=7 (until there are other than
                      the 7 events of the list before)
    DELETE /attempts  forgets them; scripts begin anew
    POST   /reset     also goes back to the script file, for the next test

The output has a line for each attempt that ends, and at the end (Ctrl-C, SIGTERM) a
table of all. Port 0 takes a free port, which the first line names.

Every client that can reach the server can control it. Without --allow-remote, it listens
on a loopback address only.`

const examples = `  stagger faultserver --script faults.yaml
  stagger faultserver --listen 127.0.0.1:0 --format json   # a test reads the addresses from the first line
  stagger faultserver --script faults.yaml --descriptors image.binpb
  stagger faultserver --listen :50051 --control :50052 --allow-remote  # in a container`

// settings are the command's flags.
type settings struct {
	listen  string
	remote  bool
	script  string
	control string
	keep    int
	format  string
	images  []string
}

// Command is "stagger faultserver".
func Command() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:               "faultserver",
		Short:             "Run a server that fails on demand, for clients in any language",
		Long:              help,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return run(c, s) },
	}
	c.Flags().StringVar(&s.listen, "listen", "127.0.0.1:50051", "the `address` to listen on; port 0 is any that is free")
	c.Flags().BoolVar(&s.remote, "allow-remote", false, "listen on an address that other machines can reach")
	c.Flags().StringVar(&s.script, "script", "", "what to answer, in YAML or JSON; - is the standard input: `faults.yaml`")
	c.Flags().StringVar(&s.control, "control", "127.0.0.1:0", "the `address` at which tests change the script and list attempts; empty: none")
	c.Flags().IntVar(&s.keep, "keep", 1000, "how many `attempts` can be listed, at least 1")
	cli.EnumFlag(c, &s.format, "format", "how attempts are written", "text", "json")
	cli.DescriptorsFlag(c, &s.images)
	_ = c.MarkFlagFilename("script", "yaml", "yml", "json") // the flags are there
	_ = c.RegisterFlagCompletionFunc("listen", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("control", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("keep", cobra.NoFileCompletions)
	return c
}

func run(c *cobra.Command, s settings) error {
	if s.keep < 1 {
		return cli.UsageErrorf("--keep %d: must be at least 1", s.keep)
	}
	known, err := cli.LoadAPI(s.images)
	if err != nil {
		return err
	}
	controller := newControl(newRegistry(known.Files()...))
	if s.script != "" {
		data, err := cli.ReadFile(c, s.script)
		if err != nil {
			return err
		}
		if err := controller.load(cli.FileName(s.script), data); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM) // from here on: the table comes first
	context.AfterFunc(ctx, stop)                                                  // a second signal ends the process at once
	defer stop()
	return s.serve(ctx, controller, c.OutOrStdout())
}
