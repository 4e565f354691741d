// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestClientsRetryStreams(t *testing.T) {
	t.Parallel()
	for _, c := range streamComparisons() {
		for _, k := range retryingClients() {
			synctest.Test(t, func(t *testing.T) {
				made, err := k.prepare(c.plan)
				if err != nil {
					t.Fatal(err)
				}
				c.answer = failOdd
				do, seen, release, err := c.connect(made)
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				want := int64(2)
				switch c.absent(k) {
				case unaryOnly:
					want = 1
				case refuses:
					want = 0
				case "":
					if k.name == bareGRPC {
						want = 1
					}
				}
				if err := do(); (err == nil) != (want == 2) || seen.Load() != want {
					t.Errorf("%s, %s: %d attempts, %v; want %d", c.name, k.name, seen.Load(), err, want)
				}
			})
		}
	}
}

func TestClientsGiveUpAlike(t *testing.T) {
	t.Parallel()
	for _, k := range retryingClients()[1:] {
		synctest.Test(t, func(t *testing.T) {
			c := named(t, "one failure")
			c.answer = fail
			made, err := k.prepare(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			do, seen, release, err := c.connect(made)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if err := do(); status.Code(err) != codes.Unavailable || seen.Load() != attempts {
				t.Errorf("%s: %v after %d attempts; want %d", k.name, err, seen.Load(), attempts)
			}
		})
	}
}

// stagger's hedges begin when the usual latency is known, so these two compare with hedges at once.
func TestHedgeIsSentWhenDue(t *testing.T) {
	t.Parallel()
	for k, delay := range map[*client]time.Duration{&hedges: time.Minute, &ourHedges: atOnce} {
		synctest.Test(t, func(t *testing.T) {
			c := named(t, "hedge fired")
			c.plan.hedging = delay
			run, end, err := c.open(*k, 1)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := run(3); err != nil || time.Since(began).Round(time.Microsecond) != 3*delay.Round(time.Microsecond) {
				t.Errorf("%s: %v after %v; want 3 times %v", k.name, err, time.Since(began), delay)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}
