// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"google.golang.org/grpc"
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
		columns: []column{{"bytes", wholeCell}}, rows: waiting, alone: true,
	}
}

// ready waits for a connection.
func ready(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("no connection: %v after a minute", state)
		}
	}
	return nil
}

const mostWaiting = 1_000_000 // calls

// waitingClients are the clients that wait in a backoff. gRPC's throttling is not among them: it stops calls if there were
// only failures.
var waitingClients = []client{builtIn, ecosystem, failsafes, budgeted, unlimited, stagger}

// waiting measures calls that wait in their first backoff, and calls that only wait for their context.
func waiting(o options) ([]row, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // collect garbage before measuring
	alone, err := waitFor(o.waiting, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}, func() bool { return true })
	rows := []row{{"a goroutine alone", []float64{alone}}}
	for _, k := range waitingClients {
		if err != nil {
			break
		}
		var h float64
		h, err = waitingOf(k, o.waiting)
		rows = append(rows, row{k.name, []float64{h}})
	}
	return rows, err
}

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
	if err := ready(conn); err != nil {
		return 0, err
	}
	return waitFor(n, connected(conn), func() bool { return s.attempts.Load() == int64(n) })
}

// waitFor measures n calls that wait for the end of their context, each in its own goroutine. They all wait when arrived
// returns true and all goroutines are idle.
func waitFor(n int, do func(context.Context) error, arrived func() bool) (float64, error) {
	err := idle(func() bool { return true }, nil)
	before := hold()
	ctx, cancel := context.WithCancel(context.Background())
	var (
		wg    sync.WaitGroup
		early = make(chan error, 1)
	)
	for range n {
		wg.Go(func() {
			if err := do(ctx); ctx.Err() == nil {
				select {
				case early <- err:
				default:
				}
			}
		})
	}
	err = errors.Join(err, idle(arrived, early))
	found := (hold() - before) / float64(n)
	cancel()
	wg.Wait()
	return found, err
}

// idle waits until arrived returns true and all goroutines are idle.
func idle(arrived func() bool, early <-chan error) error {
	runnable := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for quiet := 0; quiet < 5; {
		select {
		case err := <-early:
			return fmt.Errorf("a call did not wait: %w", err)
		case <-tick.C:
		}
		metrics.Read(runnable)
		if quiet++; !arrived() || runnable[0].Value.Uint64() > 0 {
			quiet = 0
		}
	}
	return nil
}
