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

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/lab/compare/measure"
)

// memory is what the clients hold on to.
type memory struct {
	name, what string
	commits    bool // streams, which are committed in the end
	held       []holding
}

// waitingClients are those that wait in a backoff. gRPC's throttling is not among them: it stops calls when
// nothing but failures has come, as here.
func waitingClients() []client {
	return []client{builtIn, ecosystem, retrying, budgeted, broken, unlimited, stagger}
}

// waiting measures what n calls hold while they wait in their first backoff, for each client alone.
// Next to them it measures calls that wait for nothing but their context.
func waiting(n int) (memory, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // what counts is collected before it is counted
	found := memory{name: "waiting", what: fmt.Sprintf("what each of %d calls holds on to that wait in a backoff, beside goroutines that wait for a context", n)}
	nothing, err := held(n, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}, func() bool { return true })
	if err != nil {
		return memory{}, err
	}
	nothing.Comparison, nothing.Client = found.name, "a goroutine alone"
	found.held = []holding{nothing}
	for _, k := range waitingClients() {
		one, err := waitingOf(k, n)
		if err != nil {
			return memory{}, fmt.Errorf("%s: %w", k.name, err)
		}
		one.Comparison, one.Client = found.name, k.name
		found.held = append(found.held, one)
	}
	return found, nil
}

func waitingOf(k client, n int) (holding, error) {
	made, err := k.prepare(plan{backoff: never, waiting: n})
	if err != nil {
		return holding{}, err
	}
	s := serve(fail, nil)
	defer s.Stop()
	conn, err := s.dial(made.options)
	if err != nil {
		return holding{}, err
	}
	defer func() { _ = conn.Close() }()
	if err := ready(conn); err != nil {
		return holding{}, err
	}
	return held(n, connectedIn(conn), func() bool { return s.attempts.Load() == int64(n) })
}

// held measures what n calls hold on to that wait for the end of their context: each has a goroutine of its
// own. They are all waiting when arrived says so and no goroutine has anything to do.
func held(n int, do func(context.Context) error, arrived func() bool) (holding, error) {
	if err := idle(func() bool { return true }, nil); err != nil {
		return holding{}, err
	}
	before := measure.Hold()
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
	held := measure.Hold().Since(before)
	cancel()
	wg.Wait()
	if err != nil {
		return holding{}, err
	}
	return holding{Count: n, Bytes: float64(held.Heap+held.Stacks) / float64(n), Goroutines: float64(held.Goroutines) / float64(n)}, nil
}

// idle waits until arrived says so and no goroutine has anything to do.
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
