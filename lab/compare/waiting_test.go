// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// sleep waits in the time of a bubble.
func sleep(d time.Duration) { <-time.NewTimer(d).C }

func TestWaitingCallsAreRetried(t *testing.T) {
	t.Parallel()
	for _, k := range waitingClients() {
		synctest.Test(t, func(t *testing.T) {
			const calls = 200
			made, err := k.prepare(plan{backoff: never, waiting: calls})
			if err != nil {
				t.Fatal(err)
			}
			s := serve(func(_ context.Context, n int64) error {
				if n <= calls {
					return errUnavailable
				}
				return nil
			}, nil)
			defer s.Stop()
			conn, err := s.dial(made.options)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			ended := make(chan error, calls)
			for range calls {
				go func() { ended <- connected(conn)() }()
			}
			sleep(never * 3 / 4) // gRPC's backoff varies by a fifth
			if s.attempts.Load() != calls || len(ended) > 0 {
				t.Errorf("%s: %d attempts, %d calls ended; want %d waiting", k.name, s.attempts.Load(), len(ended), calls)
			}
			sleep(never / 2)
			if s.attempts.Load() != 2*calls || len(ended) != calls {
				t.Errorf("%s: %d attempts, %d calls ended; want %d retried", k.name, s.attempts.Load(), len(ended), calls)
			}
			for range calls {
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", k.name, err)
				}
			}
		})
	}
}

func TestWaitingCallsOnly(t *testing.T) {
	t.Parallel()
	impatient := client{name: "impatient", prepare: noRetries}
	synctest.Test(t, func(t *testing.T) {
		if h, err := waitingOf(impatient, 3); status.Code(err) != codes.Unavailable {
			t.Errorf("%+v, %v; want the error of the call", h, err)
		}
	})
}
