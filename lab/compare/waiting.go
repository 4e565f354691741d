// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

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
	rows := []row{waitingRow("a goroutine alone", alone, alone)}
	for _, k := range waitingClients {
		if err != nil {
			break
		}
		var h held
		h, err = waitingOf(k, o.waiting)
		rows = append(rows, waitingRow(k.name, h, alone))
	}
	return rows, err
}

func waitingRow(name string, h, alone held) row {
	return row{name, []float64{h.heap + h.stacks, h.heap + h.stacks - alone.heap - alone.stacks, h.goroutines}}
}

func waitingOf(k client, n int) (held, error) {
	made, err := k.prepare(patient)
	if err != nil {
		return held{}, err
	}
	s := serve(fail, nil)
	defer s.Stop()
	conn, err := s.dial(made.options)
	if err != nil {
		return held{}, err
	}
	defer func() { _ = conn.Close() }()
	if err := ready(conn); err != nil {
		return held{}, err
	}
	return waitFor(n, connectedIn(conn), func() bool { return s.attempts.Load() == int64(n) })
}

// waitFor measures n calls that wait for the end of their context, each in its own goroutine. They all wait when arrived
// returns true and all goroutines are idle.
func waitFor(n int, do func(context.Context) error, arrived func() bool) (held, error) {
	if err := idle(func() bool { return true }, nil); err != nil {
		return held{}, err
	}
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
	err := idle(arrived, early)
	found := hold().since(before, n)
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
