// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
)

// record is what became of a client's calls.
type record struct {
	calls    []call
	requests [][]time.Duration // when each arrived at each service, from the storm's start
}

// call is one call, as its user saw it.
type call struct {
	due  time.Duration // when it should begin, from the storm's start
	late time.Duration // how much later it did, which is the machine's fault
	took time.Duration
	ok   bool
}

// play lets a storm come over all contenders at once, each with servers of its own, and returns what
// became of the same calls.
func play(ctx context.Context, s storm, who []contender, seed uint64) ([]record, error) {
	chains := make([]chain, 0, len(who))
	defer func() {
		for _, c := range chains {
			c.close()
		}
	}()
	for _, w := range who {
		c, err := startChain(ctx, s, w)
		if err != nil {
			return nil, err
		}
		chains = append(chains, c)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	due := arrivals(s, s.shape().capacity(), seed)
	records := make([]record, len(who))
	start := time.Now()
	var users sync.WaitGroup
	for i, c := range chains {
		records[i].calls = make([]call, len(due))
		users.Go(func() { c.first().arrive(ctx, start, s, due, records[i].calls) })
	}
	err := conduct(ctx, start, s, chains)
	if err != nil {
		cancel() // the users go home
	}
	users.Wait() // their last calls end after the storm
	for i, c := range chains {
		c.close() // what arrived is complete
		records[i].requests = c.requests(start)
	}
	return records, err
}

// conduct leads the servers through the phases.
func conduct(ctx context.Context, start time.Time, s storm, chains []chain) error {
	end := start
	for _, p := range s.phases {
		for _, c := range chains {
			if err := c.last().enter(p); err != nil {
				return err
			}
		}
		end = end.Add(p.length)
		if !sleep(ctx, time.Until(end)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// arrive makes each call at its time, on any connection, and returns when all have ended. Each has
// its own place in out.
func (f *fleet) arrive(ctx context.Context, start time.Time, s storm, due []time.Duration, out []call) {
	var running sync.WaitGroup
	defer running.Wait()
	for i, at := range due {
		if !sleep(ctx, time.Until(start.Add(at))) {
			return
		}
		conn := f.pick()
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, s.callTimeout())
			defer cancel()
			began := time.Now()
			err := conn.Invoke(ctx, s.method(), &emptypb.Empty{}, &emptypb.Empty{})
			out[i] = call{due: at, late: began.Sub(start.Add(at)), took: time.Since(began), ok: err == nil}
		})
	}
}

// sleep waits, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
