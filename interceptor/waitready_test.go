// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/policy"
)

// A server restarts: it is down for half a second, and the client's connection is made anew. Without
// waitForReadyOnRetry, attempts fail at once meanwhile.
func TestRetriesMayWaitForTheConnection(t *testing.T) {
	for _, row := range []struct {
		name     string
		waits    bool
		deadline time.Duration
		opts     []grpc.CallOption
		attempts int // 0: the call fails
	}{
		{"not asked for", false, time.Minute, nil, 0},
		{"asked for", true, time.Minute, nil, 2},
		{"a call without deadline might wait for ever", true, 0, nil, 0},
		{"the call says otherwise", true, time.Minute, []grpc.CallOption{grpc.WaitForReady(false)}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			retry := plain()
			retry.Backoff.Initial, retry.Backoff.Multiplier, retry.WaitForReadyOnRetry = 10*ms, 1, &row.waits
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, text("up again"))
				s.Down()
				time.AfterFunc(500*ms, s.Up)
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if row.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, row.deadline)
				}
				defer cancel()
				got, err := s.call(ctx, get, row.opts...)
				if row.attempts == 0 {
					if reasonOf(err) != policy.ReasonAttemptsExhausted {
						t.Errorf("%q, %v (%s); want attempts to be burnt", got, err, reasonOf(err))
					}
					return
				}
				if got != "up again" || err != nil || len(s.attempts) != row.attempts {
					t.Errorf("%q, %v after %d attempts; want %d", got, err, len(s.attempts), row.attempts)
				}
			})
		})
	}
}
