// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// phase is a part of the show: an action on a service, and how long users go on after it.
type phase struct {
	title  string
	length time.Duration
	begin  func(ctx context.Context, f *fleet) error
}

// phases are the whole show.
var phases = []phase{
	{title: "All is well", length: 2 * time.Second},
	{title: "Payments is killed, with payments under way, and started again after half a second", length: 4 * time.Second, begin: func(ctx context.Context, f *fleet) error {
		if err := f.setPace(ctx, "payments", pace{Takes: 200 * time.Millisecond}); err != nil {
			return err
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		if err := f.kill("payments"); err != nil {
			return err
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		return f.start("payments")
	}},
	{title: "Inventory is slow: every twentieth of its responses takes half a second", length: 3 * time.Second, begin: func(ctx context.Context, f *fleet) error {
		return f.setPace(ctx, "inventory", pace{Takes: 5 * time.Millisecond, Slow: 500 * time.Millisecond, SlowEvery: 20})
	}},
	{title: "Inventory is overloaded: it can serve 80 of the 100 calls a second", length: 3 * time.Second, begin: func(ctx context.Context, f *fleet) error {
		return f.setPace(ctx, "inventory", pace{Takes: 50 * time.Millisecond})
	}},
	{title: "Inventory is killed, and stays dead", length: 6 * time.Second, begin: func(_ context.Context, f *fleet) error { return f.kill("inventory") }},
	{title: "Inventory is started again", length: 3 * time.Second, begin: func(ctx context.Context, f *fleet) error {
		if err := f.start("inventory"); err != nil {
			return err
		}
		return f.waitFor(ctx, "inventory")
	}},
}

// show takes the shop through all phases, and prints what became of the users' calls. A second shop, whose policies are in mode OFF, has
// the same phases at the same times.
func show(ctx context.Context, out io.Writer, web int, again bool) (err error) {
	f, err := startFleet(ctx, policy.ModeEnforce, web)
	if err != nil {
		return err
	}
	defer f.stop()
	plain, err := startFleet(ctx, policy.ModeOff, 0)
	if err != nil {
		return err
	}
	defer plain.stop()
	fmt.Fprintln(out, "users → gateway → orders → inventory, payments")
	if again {
		for _, service := range order {
			fmt.Fprintf(out, "%-10s http://%[2]s/debug/stagger/  http://%[2]s/metrics\n", service, f.web[service])
		}
	}
	u, err := newUsers(f.grpc["gateway"])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.conn.Close()) }()
	others, err := newUsers(plain.grpc["gateway"])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, others.conn.Close()) }()
	for first := true; first || again; first = false {
		for _, p := range phases {
			var without *result
			ended := make(chan error, 1)
			go func() {
				var err error
				without, err = play(ctx, plain, others, p)
				ended <- err
			}()
			r, err := play(ctx, f, u, p)
			err = errors.Join(err, <-ended)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.title, err)
			}
			if _, err := fmt.Fprintf(out, "%v  without retries: %s\n  without retries: %s\n",
				r, without.users("Browse"), without.users("Buy")); err != nil {
				return err
			}
		}
	}
	keys, err := readLedger(f.ledgerFile())
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, "\n", summary(keys))
	return err
}

// play makes users call for the length of a phase, and returns the outcomes.
func play(ctx context.Context, f *fleet, u *users, p phase) (*result, error) {
	before, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	stop := u.call(ctx)
	if p.begin != nil {
		err = p.begin(ctx, f)
	}
	if err == nil {
		err = pause(ctx, p.length)
	}
	seen := stop()
	if err != nil {
		return nil, err
	}
	after, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	for r, n := range before {
		after[r] -= n
	}
	return &result{p.title, seen, after}, nil
}

// pause waits, unless the show is over.
func pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
