// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/orders"
)

// listener is told how the day goes.
type listener interface {
	enter(begin time.Duration, p phase)
	ended(contender int, ok bool) // a call; from many goroutines
}

// play sends the same calls to every contender, side by side, and returns what became of them.
func play(ctx context.Context, d day, calls []arrival, who []contender, l listener) ([]record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fleets := make([]*fleet, len(who))
	defer func() {
		for _, f := range fleets {
			if f != nil {
				f.close()
			}
		}
	}()
	for i, c := range who {
		f, err := startFleet(ctx, d.fleet, c.options)
		if err != nil {
			return nil, err
		}
		fleets[i] = f
	}
	records := make([]record, len(who))
	start := time.Now()
	var users sync.WaitGroup
	for i, f := range fleets {
		records[i].calls = make([]call, len(calls))
		users.Go(func() { f.arrive(ctx, start, calls, records[i].calls, func(ok bool) { l.ended(i, ok) }) })
	}
	if err := conduct(ctx, start, d, fleets, l); err != nil {
		cancel(err) // the users go home
		users.Wait()
		return nil, err
	}
	users.Wait() // their last calls end after the day
	for i, f := range fleets {
		f.close()
		records[i].see(start, f.attempts())
	}
	return records, nil
}

// conduct leads the servers through the phases.
func conduct(ctx context.Context, start time.Time, d day, fleets []*fleet, l listener) error {
	var begin time.Duration
	for _, p := range d.phases {
		l.enter(begin, p)
		for _, f := range fleets {
			if err := f.enter(p); err != nil {
				return err
			}
		}
		begin += p.length
		if !sleep(ctx, time.Until(start.Add(begin))) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// arrive makes each call at its time, whatever became of the others, and returns when all have
// ended. Each has its own place in out.
func (f *fleet) arrive(ctx context.Context, start time.Time, calls []arrival, out []call, ended func(ok bool)) {
	var running sync.WaitGroup
	defer running.Wait()
	for i, c := range calls {
		if !sleep(ctx, time.Until(start.Add(c.at))) {
			return
		}
		running.Go(func() {
			out[i] = f.call(ctx, start, i, c)
			ended(out[i].ok)
		})
	}
}

// call makes one call. The request names the call, so that the server's side can be matched.
func (f *fleet) call(ctx context.Context, start time.Time, i int, c arrival) call {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	method := orders.GetOrder
	if c.order {
		method = orders.CreateOrder
	}
	began := time.Now()
	err := f.conn.Invoke(ctx, method, wrapperspb.String(strconv.Itoa(i)), &emptypb.Empty{})
	return call{at: began.Sub(start), took: time.Since(began), ok: err == nil}
}
