// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Metrics is a gRPC client that shows in Prometheus' form, and on a page, what its Retrier does, while its server has
// one outage after the other:
//
//	go run . &
//	prometheus --config.file=prometheus.yml
//
// alerts.yaml are the rules that its alerts follow, dashboard.json is a dashboard for Grafana.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/stagger-go/stagger/observe/debugpage"
	"github.com/stagger-go/stagger/testserver"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9464", "`address` to serve /metrics at")
	flag.Parse()
	if err := run(*listen); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// run plays outages and serves the metrics of the client until the program is interrupted.
func run(listen string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := testserver.New(testserver.Keep(0))
	if err != nil {
		return err
	}
	defer server.Close()
	c, err := newClient(server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.metrics())
	mux.Handle("/debug/stagger/", debugpage.Handler(c.retrier))
	mux.Handle("/debug/stagger/switch", debugpage.Switch{}.Handler(c.retrier))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("http://%[1]s/metrics\nhttp://%[1]s/debug/stagger/\nhttp://%[1]s/debug/stagger/switch\n", lis.Addr())

	played := make(chan error, 1)
	go func() {
		played <- play(ctx, server, c.conn, day)
		_ = web.Close() // only once no call adds to the metrics any more
	}()
	if err := web.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-played
}
