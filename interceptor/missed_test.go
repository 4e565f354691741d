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

// A missed deadline takes a part of a retry from the bucket, if a usual response would have come long before.
func TestMissedDeadlines(t *testing.T) {
	d := budget.Default()
	for name, row := range map[string]struct {
		usual, deadline time.Duration
		step            testserver.Step
		calls           int
		want            float64 // of the bucket, after these calls
	}{
		"hangs":                             {10 * ms, time.Second, testserver.Hang(), 5, d.Size - 5*d.MissedCost},
		"a deadline that is usually missed": {600 * ms, time.Second, testserver.Hang(), 5, d.Size},
		"nothing is known of the method":    {0, time.Second, testserver.Hang(), 5, d.Size},
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
				s.On(get, row.step)
				for range row.calls {
					ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
					if _, err := s.call(ctx, get); reasonOf(err) != policy.ReasonDeadlineExceeded {
						t.Errorf("%v; want deadline_exceeded", err)
					}
					cancel()
				}
				// Meanwhile, time has added a tenth at most.
				if got := s.retrier.State().Budgets[0].Balance; got < row.want || got > math.Min(row.want+0.1, 6) {
					t.Errorf("balance %v; want %v", got, row.want)
				}
			})
		})
	}
}
