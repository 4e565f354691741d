// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/lab/peers"
)

// patient is the plan of clients whose calls should wait.
var patient = peers.Plan{Attempts: 4, Initial: never, Max: never}

// hold measures heap and stacks of this process in bytes, after garbage collection: the second one empties pools, and finalizers let go
// of more, which the next one takes.
func hold() float64 {
	var m runtime.MemStats
	for last := uint64(math.MaxUint64); ; last = m.HeapAlloc {
		debug.FreeOSMemory()
		if runtime.ReadMemStats(&m); m.HeapAlloc >= last-last/1000 {
			return float64(m.HeapAlloc + m.StackInuse)
		}
	}
}

// memory returns the table of the memory of calls that wait.
func memory(o options) table {
	return table{
		name: "waiting", what: fmt.Sprintf("Memory of each of %d calls that wait in a backoff at the same time, on heap and stacks", o.waiting),
		columns: []column{{"bytes", wholeCell}}, rows: waiting, once: true,
	}
}

const mostWaiting = 1_000_000 // calls

// waitingClients are the clients that wait in a backoff. stagger with a budget is not among them: while everything fails, its calls wait for an
// answer, and for a few seconds only. Nor is gRPC's throttling: it stops calls if there were
// only failures.
var waitingClients = []client{builtIn, ecosystem, failsafes, budgeted, unlimited}

// waiting measures calls that wait in their first backoff.
func waiting(o options) (rows []row, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // collect garbage before measuring
	for _, k := range waitingClients {
		h, err := waitingOf(k, o.waiting)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		rows = append(rows, row{k.name, []float64{h}})
	}
	return rows, nil
}

// waitingOf measures n calls of a client, each in its own goroutine.
func waitingOf(k client, n int) (float64, error) {
	made, err := k.prepare(patient)
	if err != nil {
		return 0, err
	}
	s := serve(fail, nil)
	defer s.Stop()
	conn, err := s.dial(made.options)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		conn.WaitForStateChange(ctx, state)
	}
	before, do := hold(), calling(conn.Invoke)
	var wg sync.WaitGroup
	var ended atomic.Int64
	for range n {
		wg.Go(func() {
			_ = do(ctx)
			ended.Add(1)
		})
	}
	for s.attempts.Load() < int64(n) && ended.Load() == 0 {
		time.Sleep(time.Second)
	}
	time.Sleep(time.Second) // the last ones wait
	held, early := hold()-before, ended.Load()
	cancel()
	wg.Wait()
	if early > 0 {
		return 0, fmt.Errorf("%d calls did not wait", early)
	}
	return held / float64(n), nil
}
