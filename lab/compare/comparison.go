// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/lab/peers"
)

// comparison measures the cost of the same operation with several clients.
type comparison struct {
	name, what string
	plan       peers.Plan
	clients    []client // the first is the reference
	goroutines []int    // that make calls in parallel, by turns; nil: one
	stub       bool     // interceptors run with only the response behind them
	answer     answer
	attempts   int64      // of each operation; else the comparison fails
	stream     streamKind // none: unary calls
}

// comparisons are all comparisons of time.
func comparisons() []comparison {
	timeouts, hedging, hedgeAtOnce := eager, peers.Plan{Initial: never}, peers.Plan{Initial: atOnce}
	timeouts.AttemptTimeout = never
	crowds, interceptors := []int{1, 4, 16}, []client{ecosystem, failsafes, budgeted, unlimited, stagger, observed}
	retrying := []client{builtIn, throttled, ecosystem, failsafes, budgeted, unlimited, stagger, observed, ourMetrics}
	const alone, inMemory = ", through the interceptor alone", ", over gRPC in memory"
	const success, failure = "Calls whose first attempt succeeds", "Calls whose first attempt fails"
	const timed, hedged, fired = "Calls with an attempt timeout that is not reached", "Calls that finish before their hedge is due", "Calls whose first attempt hangs until their hedge succeeds"
	const many = " of 100 bytes" + inMemory
	return []comparison{
		{name: stubName, what: success + alone, plan: eager, clients: interceptors, goroutines: crowds, stub: true, answer: succeed, attempts: 1},
		{name: ofSuccess, what: success + inMemory, plan: eager, clients: append([]client{bare}, retrying...), goroutines: crowds, answer: succeed, attempts: 1},
		{name: "one failure, stub", what: failure + alone, plan: eager, clients: interceptors, goroutines: crowds, stub: true, answer: failOdd, attempts: 2},
		{name: "one failure", what: failure + inMemory, plan: eager, clients: append([]client{twice}, retrying...), answer: failOdd, attempts: 2},
		{name: "timeout, stub", what: timed + alone, plan: timeouts, clients: []client{ecosystem, failsafes, stagger}, stub: true, answer: succeed, attempts: 1},
		{name: "timeout", what: timed + inMemory, plan: timeouts, clients: []client{bare, ecosystem, failsafes, stagger, observed, ourMetrics}, answer: succeed, attempts: 1},
		{name: "hedge, stub", what: hedged + alone, plan: hedging, clients: []client{hedges, ourHedges}, stub: true, answer: succeed, attempts: 1},
		{name: "hedge", what: hedged + inMemory, plan: hedging, clients: []client{bare, ourHedges}, answer: succeed, attempts: 1},
		{name: "hedge sent, stub", what: fired + alone, plan: hedgeAtOnce, clients: []client{hedges, ourHedges}, stub: true, answer: hangOdd, attempts: 2},
		{name: "hedge sent", what: fired + inMemory, plan: hedgeAtOnce, clients: []client{hedges, ourHedges}, answer: hangOdd, attempts: 2},
		{name: "success, metrics", what: success + inMemory, plan: eager, clients: []client{bare, bareMetrics, stagger, ourMetrics}, answer: succeed, attempts: 1},
		{name: "one failure, metrics", what: failure + inMemory, plan: eager, clients: []client{builtIn, builtInMetrics, stagger, ourMetrics}, answer: failOdd, attempts: 2},
		{name: shortName, what: "Servers stream one message" + many, plan: eager, clients: []client{bare, builtIn, ecosystem, unlimited, stagger, observed, ourMetrics}, answer: succeed, attempts: 1, stream: shortStream},
		{
			name: passedName, what: "Servers stream one message" + many + ", of a method without a policy", plan: eager,
			clients: []client{bare, noPolicy}, answer: succeed, attempts: 1, stream: shortStream,
		},
		{name: "server stream", what: "Servers stream 1000 messages" + many, plan: eager, clients: []client{bare, builtIn, ecosystem, unlimited, stagger}, answer: succeed, attempts: 1, stream: serverStream},
		{name: uploadName, what: "Clients stream 1000 messages" + many + ", and all are kept for replay until the end", plan: eager, clients: []client{bare, builtIn, unlimited, stagger}, answer: succeed, attempts: 1, stream: clientStream},
	}
}

func (c comparison) crowds() []int { return append(c.goroutines, 1)[:max(len(c.goroutines), 1)] }

// Tables and columns that have bounds.
const (
	stubName    = "success, stub"
	shortName   = "short server stream"
	passedName  = "stream without a policy"
	uploadName  = "client stream"
	processor   = "processor ×"
	allocations = "allocations"
	allocated   = "bytes"
)

// table returns the comparison as a table, with a column of ratios for each number of goroutines.
func (c comparison) table() table {
	t := table{name: c.name, what: c.what, rows: c.rows}
	for _, n := range c.crowds() {
		name := "× " + c.clients[0].name
		switch {
		case len(c.goroutines) > 0 && n == 1:
			name += ", 1 goroutine"
		case n > 1:
			name = fmt.Sprintf("%d goroutines", n)
		}
		t.columns = append(t.columns, column{name, ratioCell})
	}
	t.columns = append(t.columns, column{processor, ratioCell}, column{"time", durationCell}, column{allocations, wholeCell}, column{allocated, wholeCell})
	return t
}

// rows returns the figures of one process: a row for each client.
func (c comparison) rows(o options) ([]row, error) {
	rows := make([]row, len(c.clients))
	for i, n := range c.crowds() {
		costs, err := c.session(o.plan, n)
		if err != nil {
			return nil, err
		}
		for k, cost := range costs {
			r := &rows[k]
			if i == 0 {
				*r = row{c.clients[k].name, []float64{cost.processor, cost.nanos, cost.allocs, cost.bytes}}
			}
			r.Values = slices.Insert(r.Values, i, cost.ratio)
		}
	}
	return rows, nil
}

// session measures the clients, with operations in this many goroutines. If an operation takes more or fewer attempts than
// expected, it fails, since the figures would then be wrong.
func (c comparison) session(p plan, goroutines int) ([]cost, error) {
	backends, stop, err := c.open()
	defer stop()
	if err != nil {
		return nil, err
	}
	subjects := make([]*subject, len(c.clients))
	for i, b := range backends {
		many := b.repeat(goroutines)
		subjects[i] = &subject{name: c.clients[i].name, run: func(n int) error {
			before := b.attempts()
			if err := many(n); err != nil {
				return err
			}
			if made := b.attempts() - before; made != c.attempts*int64(n) {
				return fmt.Errorf("%d attempts for %d operations; want %d", made, n, c.attempts*int64(n))
			}
			return nil
		}}
	}
	return p.compare(subjects, 0)
}

// backend is a client and its server or stub.
type backend struct {
	operation func() func() error // creates an operation for one goroutine
	attempts  func() int64        // so far, of all clients of the server
}

// open connects the clients with one server, or gives each a stub. Clients that are interceptors alone share a connection: with one each,
// luck decides which is a percent faster, for as long as it lives. gRPC's own retries and metrics are part of a connection, and have one of
// their own. stop closes everything, also after an error.
func (c comparison) open() (all []backend, stop func(), err error) {
	s := serve(succeed, c.stream.do)
	conns := make([]*grpc.ClientConn, 0, 1+len(c.clients))
	stop = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
		s.Stop()
	}
	dial := func(options []grpc.DialOption) (*grpc.ClientConn, error) {
		conn, err := s.dial(options)
		if err == nil {
			conns = append(conns, conn)
		}
		return conn, err
	}
	shared, err := dial([]grpc.DialOption{grpc.WithDisableRetry()})
	if err != nil {
		return nil, stop, err
	}
	for _, k := range c.clients {
		made, err := k.prepare(c.plan)
		if err != nil {
			return nil, stop, fmt.Errorf("%s: %w", k.name, err)
		}
		var invoke invoker
		switch {
		case c.stub:
			invoke = made.onStub
			all = append(all, made.stub(c.answer))
		case made.shares:
			invoke = made.on(shared)
			all = append(all, c.backend(s, invoke, made.streamsOn(shared)))
		default:
			conn, err := dial(made.options)
			if err != nil {
				return nil, stop, fmt.Errorf("%s: %w", k.name, err)
			}
			invoke = conn.Invoke
			all = append(all, c.backend(s, invoke, conn.NewStream))
		}
		err = made.learn(func(options ...grpc.CallOption) error {
			return invoke(context.Background(), method, new(wrapperspb.StringValue), new(wrapperspb.StringValue), options...)
		})
		if err != nil {
			return nil, stop, fmt.Errorf("%s: %w", k.name, err)
		}
	}
	s.answer = c.answer
	s.attempts.Store(0)
	return all, stop, nil
}

// backend returns a client of the server, whose operation is a call or a stream.
func (c comparison) backend(s *server, invoke invoker, open opener) backend {
	in := calling(invoke)
	do := func() error { return in(context.Background()) }
	if c.stream.do != nil {
		do = streaming(open, c.stream)
	}
	return backend{func() func() error { return do }, s.attempts.Load}
}

// repeat runs operations in several goroutines.
func (b backend) repeat(goroutines int) func(n int) error {
	each := make([]func() error, goroutines)
	for i := range each {
		each[i] = b.operation()
	}
	return func(n int) error {
		errs := make([]error, goroutines)
		var wg sync.WaitGroup
		for i, do := range each {
			part := func() {
				for range (n + goroutines - 1 - i) / goroutines {
					if errs[i] = do(); errs[i] != nil {
						return
					}
				}
			}
			if goroutines == 1 {
				part()
			} else {
				wg.Go(part)
			}
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}
