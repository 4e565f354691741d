// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package outage plays a scenario of the simulator over real gRPC in memory, and measures the results. Several clients make
// the same calls at the same times, each to its own servers. It is for testing/synctest bubbles.
package outage

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/testserver"
)

// Outage is what to play. Each client's users make the calls of the scenario's fleets. Its policies and variants are ignored,
// since each client has its own.
type Outage struct {
	Scenario *sim.Scenario
	Calls    []Call // in the order of their times: those of [Arrivals], or others
	Clients  []Client
}

// Call is one call by a user, made however earlier calls ended.
type Call struct {
	At     time.Duration // from the start
	Method string
	Fleet  int // whose users make it: its place in the scenario
}

// Client is a way to make calls.
type Client struct {
	Name        string
	Connections int // from each process to each service that it calls; 0: as the scenario says
	Processes   int // from which the users of each fleet call, at random; 0: as the scenario says
	// Options returns the options of one process that makes calls. It is called once per process: for those of the users,
	// and for each service that calls another one.
	Options func() (Options, error)
}

// Options are a process's options for gRPC.
type Options struct {
	Dial   []grpc.DialOption
	Server []grpc.ServerOption // for services
}

// Play makes the calls for all clients in parallel and returns their records, in the order of the clients. The error is the
// cause of ctx, that of a client's options, or names a part of the scenario that cannot be played.
func (o *Outage) Play(ctx context.Context) ([]Record, error) {
	if err := playable(o.Scenario); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	worlds := make([]*world, 0, len(o.Clients))
	defer func() {
		for _, w := range worlds {
			w.closeAll()
		}
	}()
	for i := range o.Clients {
		w, err := newWorld(ctx, o.Scenario, &o.Clients[i])
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, w)
	}
	records := make([]Record, len(o.Clients))
	start := time.Now()
	var users sync.WaitGroup
	begin := func() {
		for i, w := range worlds {
			records[i] = Record{Scenario: o.Scenario, Calls: make([]Ended, len(o.Calls))}
			users.Go(func() { o.makeCalls(ctx, start, w, records[i].Calls) })
		}
	}
	if err := o.enterPhases(ctx, start, worlds, begin); err != nil {
		cancel(err)
		users.Wait()
		return nil, err
	}
	users.Wait() // the last calls end after the last phase
	for i, w := range worlds {
		w.closeAll() // the records are complete then
		records[i].Requests = w.requests(start)
	}
	return records, nil
}

// enterPhases takes all servers through the phases. It calls begin once they are in the first one.
func (o *Outage) enterPhases(ctx context.Context, start time.Time, worlds []*world, begin func()) error {
	var at time.Duration
	for i := range o.Scenario.Phases {
		p := &o.Scenario.Phases[i]
		for _, w := range worlds {
			if err := w.enterPhase(p); err != nil {
				return err
			}
		}
		if i == 0 {
			begin()
		}
		at += p.Length
		if !sleepUntil(ctx, start.Add(at)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// makeCalls makes the calls of a client's users and returns when all have ended. Each call has its own place in ended.
func (o *Outage) makeCalls(ctx context.Context, start time.Time, w *world, ended []Ended) {
	var running sync.WaitGroup
	defer running.Wait()
	for i, c := range o.Calls {
		if !sleepUntil(ctx, start.Add(c.At)) {
			return
		}
		users := w.users[c.Fleet]
		conn := users.pickConn()
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, users.call.Deadline)
			defer cancel()
			began := time.Now()
			// The request has the call's number, so that the servers' records can be matched.
			err := conn.Invoke(ctx, c.Method, wrapperspb.String(strconv.Itoa(i)), &emptypb.Empty{})
			ended[i] = Ended{Call: c, Took: time.Since(began), OK: err == nil}
		})
	}
}

// Record has the results of one client.
type Record struct {
	Scenario *sim.Scenario
	Calls    []Ended
	Requests [][]Request // arrivals at each service, in the order of the scenario
}

// Ended is a call as its user experienced it.
type Ended struct {
	Call

	Took time.Duration
	OK   bool
}

// Request is an attempt as a server received it.
type Request struct {
	testserver.Attempt

	At time.Duration // when it arrived, from the start
}

// sleepUntil waits until t. It returns false if ctx is done first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
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

// Arrivals draws the calls of a scenario's fleets, in the order of their times. They are independent, like those of many users,
// so the times between them follow the exponential distribution. A seed always gives the same calls, also in the simulator.
func Arrivals(s *sim.Scenario, seed uint64) []Call {
	fleets := make([][]Call, len(s.Fleets))
	for i := range fleets {
		fleets[i] = arrivalsOf(s, i, seed)
	}
	list := slices.Concat(fleets...)
	slices.SortStableFunc(list, func(a, b Call) int { return cmp.Compare(a.At, b.At) })
	return list
}

func arrivalsOf(s *sim.Scenario, number int, seed uint64) []Call {
	random := rand.New(rand.NewPCG(seed, uint64(number)))
	fleet := &s.Fleets[number]
	var (
		list       []Call
		begin, end time.Duration
	)
	for i := range s.Phases {
		p := &s.Phases[i]
		begin, end = end, end+p.Length
		rate := fleet.Rate * p.Load
		for at := begin; ; {
			at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
			if at >= end {
				break // the exponential has no memory: the next phase may start over
			}
			list = append(list, Call{At: at, Method: fleet.Calls[0].Method, Fleet: number})
		}
	}
	return list
}
