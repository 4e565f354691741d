// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A missed deadline takes a part of a retry from the bucket, if a usual response would have come long before, and unless the target's
// last responses were fast: then a server hangs, and there is no queue.
func TestMissedDeadlines(t *testing.T) {
	for name, row := range map[string]struct {
		usual, since, deadline time.Duration
		want                   float64 // what five calls that hang take of the bucket
	}{
		"no recent response":                {10 * ms, 11 * time.Second, time.Second, 5 * 0.3},
		"others are fast":                   {10 * ms, 0, time.Second, 0}, // a server that hangs has no queue
		"a deadline that is usually missed": {600 * ms, 11 * time.Second, time.Second, 0},
		"nothing is known of the method":    {0, 11 * time.Second, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			retry.Budget = ""
			fresh(t, config(retry), func(t *testing.T, s scene) {
				if row.usual > 0 {
					s.On(get, text("").Delay(row.usual))
					for range 20 {
						_, _ = s.call(t.Context(), get)
					}
				}
				time.Sleep(row.since)
				s.On(get, testserver.Hang())
				full := budget.Default().Size
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
					if _, err := s.call(ctx, get); reasonOf(err) != policy.ReasonDeadlineExceeded {
						t.Errorf("%v; want deadline_exceeded", err)
					}
					cancel()
				}
				// Meanwhile, time has added a tenth at most.
				if got := s.retrier.State().Budgets[0].Balance; got < full-row.want-1e-6 || got > math.Min(full-row.want+0.1, full) {
					t.Errorf("balance %v; want %v", got, full-row.want)
				}
			})
		})
	}
}
