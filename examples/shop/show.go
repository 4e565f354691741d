// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
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

// shop is the four services with their users.
type shop struct {
	*fleet

	users *users
}

func startShop(ctx context.Context, policies []byte, web int) (*shop, error) {
	f, err := startFleet(ctx, policies, web)
	if err != nil {
		return nil, err
	}
	u, err := newUsers(f.grpc["gateway"])
	if err != nil {
		f.stop()
		return nil, err
	}
	return &shop{f, u}, nil
}

func (s *shop) close() error {
	err := s.users.conn.Close()
	s.stop()
	return err
}

// show takes the shop through all phases, and prints what became of the users' calls. A second shop, whose policies are in mode OFF, has
// the same phases at the same times.
func show(ctx context.Context, out io.Writer, web int, again bool) (err error) {
	s, err := startShop(ctx, policies, web)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	plain, err := startShop(ctx, withoutRetries(), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.close()) }()
	fmt.Fprintln(out, "users → gateway → orders → inventory, payments")
	if again {
		for _, service := range order {
			fmt.Fprintf(out, "%-10s http://%[2]s/debug/stagger/  http://%[2]s/metrics\n", service, s.web[service])
		}
	}
	for first := true; first || again; first = false {
		for _, p := range phases {
			r, without, err := playBoth(ctx, s, plain, p)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.title, err)
			}
			if _, err := fmt.Fprintf(out, "%v  without retries: %s\n  without retries: %s\n", r, without.users("Browse"), without.users("Buy")); err != nil {
				return err
			}
		}
	}
	keys, err := readLedger(s.ledgerFile())
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, "\n", summary(keys))
	return err
}

// playBoth plays a phase in both shops at once.
func playBoth(ctx context.Context, s, plain *shop, p phase) (with, without *result, err error) {
	ended := make(chan error, 1)
	go func() {
		var err error
		without, err = play(ctx, plain.fleet, plain.users, p)
		ended <- err
	}()
	with, err = play(ctx, s.fleet, s.users, p)
	return with, without, errors.Join(err, <-ended)
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
