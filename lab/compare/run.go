// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/lab/compare/measure"
)

// outcome is what came of a comparison.
type outcome struct {
	comparison

	costs  [][]measure.Cost // by goroutines, then by clients that took part
	absent []absence
}

func (c comparison) serving() func(grpc.ServerStream) error {
	if c.stream == nil {
		return nil
	}
	return c.stream.do
}

// run compares the clients.
func (c comparison) run(p measure.Plan) (o outcome, err error) {
	o.comparison = c
	var there []client
	for _, k := range c.clients {
		if why := c.absent(k); why != "" {
			o.absent = append(o.absent, absence{c.name, k.name, why})
		} else {
			there = append(there, k)
		}
	}
	p.Base = slices.IndexFunc(there, func(k client) bool { return k.name == c.base })
	for _, n := range c.goroutines {
		costs, err := measure.Compare(p, func() ([]measure.Subject, func() error, error) { return c.session(there, n) })
		if err != nil {
			return outcome{}, err
		}
		o.costs = append(o.costs, costs)
	}
	return o, nil
}

// session opens the clients, for so many goroutines each.
func (c comparison) session(there []client, goroutines int) (subjects []measure.Subject, end func() error, err error) {
	var ends []func() error
	end = func() error {
		errs := make([]error, 0, len(ends))
		for _, e := range ends {
			errs = append(errs, e())
		}
		return errors.Join(errs...)
	}
	for _, k := range there {
		run, e, err := c.open(k, goroutines)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", k.name, err), end())
		}
		ends = append(ends, e)
		subjects = append(subjects, measure.Subject{Name: k.name, Run: run})
	}
	return subjects, end, nil
}

// open makes the operation of a client. The end fails if not every operation took the attempts that it
// is to take: then what was measured is not what it is called.
func (c comparison) open(k client, goroutines int) (run func(n int) error, end func() error, err error) {
	made, err := k.prepare(c.plan)
	if err != nil {
		return nil, nil, err
	}
	do, seen, release, err := c.connect(made)
	if err != nil {
		return nil, nil, err
	}
	count, many := int64(0), repeat(do, goroutines)
	run = func(n int) error {
		count += int64(n)
		return many(n)
	}
	return run, func() error {
		release()
		if got, want := seen.Load(), c.attempts*count; got != want {
			return fmt.Errorf("%s made %d attempts for %d operations; want %d", k.name, got, count, want)
		}
		return nil
	}, nil
}

// connect makes the operation of a client, and counts the attempts that are seen behind it.
func (c comparison) connect(made setup) (do operation, seen *atomic.Int64, release func(), err error) {
	if c.stub {
		do, seen = stub(made, c.answer)
		return do, seen, func() {}, nil
	}
	s := serve(c.answer, c.serving())
	conn, err := s.dial(made.options)
	if err != nil {
		s.Stop()
		return nil, nil, nil, err
	}
	do = connected(conn)
	if c.stream != nil {
		do = streamed(conn, *c.stream)
	}
	return do, &s.attempts, func() { _ = conn.Close(); s.Stop() }, nil
}
