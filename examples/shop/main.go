// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Shop is a chain of four services that call each other through stagger: a gateway, orders, inventory and payments, each a
// process of its own.
//
//	go run ./examples/shop              # starts all four, sends users, and breaks one service after the other
//	go run ./examples/shop kubernetes   # prints the same shop as manifests
//
// While it runs, each process serves its metrics (/metrics) and a page that shows what its Retrier does (/debug/stagger/).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc/resolver/dns"
)

func main() {
	dns.SetMinResolutionInterval(time.Second) // with gRPC's 30 s, a rolling update may be faster
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := ""
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("shop "+command, flag.ContinueOnError)
	switch command {
	case "":
		web := flags.Int("web", 9464, "first of four `ports` for metrics and pages; 0 for free ones")
		again := flags.Bool("again", false, "repeat the show until interrupted")
		if err := flags.Parse(args); err != nil {
			return err
		}
		return show(ctx, os.Stdout, *web, *again)
	case "kubernetes":
		return printManifests(os.Stdout)
	case "serve":
		s := setting{}
		flags.StringVar(&s.service, "service", "", "gateway, orders, inventory or payments")
		flags.StringVar(&s.listen, "listen", "127.0.0.1:0", "`address` of the gRPC server")
		flags.StringVar(&s.web, "web", "127.0.0.1:0", "`address` of metrics and page")
		flags.StringVar(&s.policy, "policy", "retry.yaml", "policy `file`")
		flags.StringVar(&s.ledger, "ledger", "", "`file` of the payments")
		flags.BoolVar(&s.attended, "attended", false, "end with standard input, and accept changes of the pace")
		flags.Func("calls", "the `services` that this one calls: orders=dns:///orders:50051,…", func(text string) (err error) {
			s.below, err = addresses(text)
			return err
		})
		if err := flags.Parse(args); err != nil {
			return err
		}
		if _, ok := services[s.service]; !ok {
			return fmt.Errorf("-service %q: want gateway, orders, inventory or payments", s.service)
		}
		return serve(s)
	default:
		return fmt.Errorf("%q is no command: want none, serve or kubernetes", command)
	}
}
