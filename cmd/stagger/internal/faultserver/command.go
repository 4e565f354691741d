// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package faultserver is "stagger faultserver": a gRPC server that fails on demand, for clients in any language.
package faultserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // for clients that compress
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/testserver"
)

const help = `Run a gRPC server that responds to every method of every service by a script: with errors,
pushback, delays, silence, half a stream, a cut connection, an overload. Use it to test
clients in any language.

The script is a file (--script), or the test sends it over HTTP (--control). Without a
script, the server responds OK with an empty message. Messages are bytes, or JSON for an
API that the server knows (--descriptors).

    scripts:
      - method: /acme.orders.v1.OrderService/GetOrder   # or /acme.orders.v1.OrderService/*, or "*"
        steps:
          - {fail: {code: UNAVAILABLE}, times: 2}       # the first two attempts
          - {replies: [{json: {id: "7"}}]}              # from then on

proto/stagger/faultserver/v1/script.proto describes all keys of a script. The server has
gRPC's health service.

A test controls the server over HTTP, at a separate address in the first line of the
output:

    POST /   replaces all scripts and clears the list, in one step: no call gets an answer
             of neither. The body is a script file, or empty for that of --script. The
             header X-Stagger-Control: 1 is required.
    GET  /   lists attempts, in JSON: the last 1000, and of their requests 64 MiB

The output has a line for each attempt that ends. Port 0 chooses a free port, which is in
the first line.

Every client that can reach the server can control it. Without --allow-remote, it listens
on a loopback address only.`

const examples = `  stagger faultserver --script faults.yaml
  stagger faultserver --listen 127.0.0.1:0 --format json   # a test reads the addresses from the first line
  stagger faultserver --script faults.yaml --descriptors image.binpb
  stagger faultserver --listen :50051 --control :50052 --control-host faults --allow-remote  # in a container`

// settings are the command's flags.
type settings struct {
	listen  string
	remote  bool
	script  string
	control string
	hosts   []string
	format  string
	images  []string
}

// Command returns "stagger faultserver".
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
	c.Flags().StringVar(&s.listen, "listen", "127.0.0.1:50051", "the `address` to listen on; port 0 chooses a free one")
	c.Flags().BoolVar(&s.remote, "allow-remote", false, "listen on an address that other machines can reach")
	c.Flags().StringVar(&s.script, "script", "", "the `file` with the script, in YAML or JSON; - is the standard input")
	c.Flags().StringVar(&s.control, "control", "127.0.0.1:0", "the `address` at which tests change the script and list attempts; empty: none")
	c.Flags().StringSliceVar(&s.hosts, "control-host", nil, "a `name` that requests to --control may use, besides localhost and IP addresses; may be repeated")
	cli.EnumFlag(c, &s.format, "format", "how attempts are written", "text", "json")
	cli.DescriptorsFlag(c, &s.images)
	_ = c.MarkFlagFilename("script", "yaml", "yml", "json") // the flags are there
	for _, flag := range []string{"listen", "control", "control-host"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	return c
}

func run(c *cobra.Command, s settings) error {
	known, err := cli.LoadAPI(s.images)
	if err != nil {
		return err
	}
	controller := &control{known: allFiles(known.Only().Files...), hosts: s.hosts}
	if s.script != "" {
		data, err := cli.ReadFile(c, s.script)
		if err != nil {
			return err
		}
		if controller.first, err = parse(cli.FileName(s.script), data, controller.known); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	defer stop()
	return s.serve(ctx, controller, c.OutOrStdout())
}

// start starts a test server under a control, with gRPC's health service. Its lists of headers are bounded, since attempts keep
// them.
func (c *control) start(opts ...testserver.Option) error {
	s, err := testserver.New(append(opts, testserver.Keep(1000), testserver.ServerOptions(grpc.MaxHeaderListSize(64<<10)),
		testserver.Register(func(to grpc.ServiceRegistrar) { healthv1.RegisterHealthServer(to, health.NewServer()) }))...)
	if err != nil {
		return err
	}
	c.server = s
	if err := c.set(c.first); err != nil {
		s.Close()
		return err
	}
	return nil
}

// serve serves until ctx is done.
func (s settings) serve(ctx context.Context, c *control, out io.Writer) error {
	calls, err := listen(ctx, "--listen", s.listen, s.remote)
	if err != nil {
		return err
	}
	defer func() { _ = calls.Close() }() // already closed after serving
	where := addresses{Listening: calls.Addr().String()}
	var requests net.Listener
	if s.control != "" {
		if requests, err = listen(ctx, "--control", s.control, s.remote); err != nil {
			return err
		}
		defer func() { _ = requests.Close() }()
		where.Control = "http://" + requests.Addr().String()
	}
	log, err := newAttemptLog(out, s.format, where)
	if err != nil {
		return err
	}
	scripted := make(chan struct{})
	err = c.start(testserver.Listener(gate{calls, scripted}), testserver.Observe(log.add))
	close(scripted)
	if err != nil {
		return errors.Join(err, log.end())
	}
	if requests != nil {
		web := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
		context.AfterFunc(ctx, func() { _ = web.Close() })
		_ = web.Serve(requests) // until it is closed
	}
	<-ctx.Done()
	c.server.Close()
	return log.end()
}

// gate is a listener that accepts no connection before it is open: the first call must find the scripts.
type gate struct {
	net.Listener
	open chan struct{}
}

// Accept waits until the gate is open, and then for the next connection.
func (g gate) Accept() (net.Conn, error) {
	<-g.open
	return g.Listener.Accept()
}

// listen listens on a loopback address, or with remote on any.
func listen(ctx context.Context, flag, address string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, cli.UsageErrorf("%s %q: must be host:port, such as 127.0.0.1:50051", flag, address)
	}
	if a, err := netip.ParseAddr(host); !remote && host != "localhost" && (err != nil || !a.Unmap().IsLoopback()) {
		return nil, cli.UsageErrorf("%s %s: other machines can reach it: "+
			"must be 127.0.0.1, [::1] or localhost, or --allow-remote must be given", flag, address)
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}
