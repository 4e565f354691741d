// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// TestResume_AnHourOfCuts has a server that brings one message of every stream and cuts it then, and an application that
// opens another stream a second after one has ended. Progress starts the attempts anew each time, so that only the backoff
// and the budget bound the requests.
func TestResume_AnHourOfCuts(t *testing.T) {
	backoff := func(first, longest time.Duration) policy.Backoff {
		return policy.Backoff{Initial: first, Max: longest, Multiplier: 2, Jitter: policy.JitterNone}
	}
	for name, row := range map[string]struct {
		config func() policy.Config
		most   func(streams int) int // requests
		least  int
		ends   policy.Reason // of streams, but for those of the last seconds
	}{
		// 1, 7 more until the backoff is 10 s, and one each 10 s: streams that are cut at once do not reset it. In the last
		// 10 s no backoff fits, and others begin anew.
		"no budget: the backoff grows": {func() policy.Config {
			retry := plain()
			retry.Backoff = backoff(100*ms, 10*time.Second)
			return config(retry)
		}, func(int) int { return 366 + 15 }, 366, ""},
		// The default budget: 0.8 extra attempts a second, 4 more at first, and one for ten streams.
		"the budget": {func() policy.Config {
			retry := plain()
			retry.Backoff, retry.Budget = backoff(10*ms, 10*ms), ""
			return config(retry)
		}, func(streams int) int { return streams + streams/10 + 3*streams/10 + 4 }, 4600, policy.ReasonBudgetExhausted},
		// A hedging policy has no backoff of its own: 50 ms at first, up to 2 s, half of that here.
		"hedging without a budget: a backoff all the same": {func() policy.Config { return hedged() }, func(int) int { return 3600 + 10 }, 3590, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On("*", moves.Play(moves.Receive(1), say("1")).Then(down()))
				r := mustNew(t, mustSet(t, row.config()), quiet, interceptor.WithRandom(func() float64 { return 0.5 }))
				conn := server.Dial(t, r.DialOptions()...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				streams := 0
				for ctx.Err() == nil {
					streams++
					stream, err := conn.NewStream(ctx, serverStream, get, interceptor.Resume(after))
					if err != nil {
						t.Fatal(err)
					}
					_ = stream.SendMsg(wrapperspb.String("from the start"))
					_ = stream.CloseSend()
					if _, err = receive(stream); time.Until(deadlineOf(ctx)) > 10*time.Second && reasonOf(err) != row.ends {
						t.Fatalf("%v (%s); want %q", err, reasonOf(err), row.ends)
					}
					time.Sleep(time.Second)
				}
				requests := server.Count(get)
				t.Logf("%d requests for %d streams", requests, streams)
				if most := row.most(streams); requests < row.least || requests > most {
					t.Errorf("%d requests for %d streams; want %d to %d", requests, streams, row.least, most)
				}
			})
		})
	}
}

func deadlineOf(ctx context.Context) time.Time {
	deadline, _ := ctx.Deadline()
	return deadline
}
