// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// again has the reasons after which another call may help, as the entries of docs/runbook.md say.
var again = map[policy.Reason]bool{policy.ReasonDeadlineTooClose: true, policy.ReasonBudgetExhausted: true, policy.ReasonNotConnected: true}

// failure returns the details of a call's error.
var failure = errors.AsType[*interceptor.Error]

// callInALoop is the loop of docs/runbook.md.
func callInALoop(ctx context.Context, call func(context.Context) error, pause func() time.Duration) error {
	err := call(ctx)
	for e, ok := failure(err); ok && again[e.Reason] && sleep(ctx, max(e.RetryAfter, pause())); e, ok = failure(err) {
		err = call(ctx)
	}
	return err
}

// sleep waits, and returns false if the context is over before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// The loop waits as long as the server asks for, and no longer than its context.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t)
		srv.On(get, down().Pushback("5000").Times(2), testserver.OK())
		conn := srv.Dial(t, mustNew(t, mustSet(t, config(plain())), interceptor.WithRandom(func() float64 { return 0 }), quiet).DialOptions()...)
		call := func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return conn.Invoke(ctx, get, wrapperspb.String("order 7"), new(wrapperspb.StringValue))
		}
		began := time.Now()
		pause := func() time.Duration { return time.Second }
		if err := callInALoop(t.Context(), call, pause); err != nil || time.Since(began) != 10*time.Second || srv.Count(get) != 3 {
			t.Errorf("%v after %v and %d attempts; want a success in the third, after 10 s", err, time.Since(began), srv.Count(get))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		srv.On(get, down().Pushback("5000"))
		if err := callInALoop(ctx, call, pause); reasonOf(err) != policy.ReasonDeadlineTooClose || ctx.Err() == nil {
			t.Errorf("%v", err)
		}
	})
}
