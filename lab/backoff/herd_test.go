// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const lockMethod = "/stagger.backoff.v1.Lock/Take"

// herdPolicy is a policy file of up to 100 attempts, or, without them, of five.
func herdPolicy(settings, retry string) string {
	return settings + `
methodConfig:
- name: [{service: stagger.backoff.v1.Lock, method: Take}]
  retryPolicy: {initialBackoff: 0.1s, maxBackoff: 2s, retryableStatusCodes: [UNAVAILABLE], ` + retry + "}\n"
}

// play is what a server saw of a herd.
type play struct {
	arrivals []time.Duration
	served   int
	took     time.Duration // until the last call ended
}

// playHerd lets 100 clients call a server within a tenth of a millisecond. The server takes one request at a time, for 10 ms, and refuses all
// others. The clients begin a microsecond apart, so that each play of a seed is the same.
func playHerd(t *testing.T, file string, seed uint64) (p play) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Add(time.Second)
		var mu sync.Mutex // guards p.arrivals
		var busy atomic.Bool
		srv := testserver.Start(t, testserver.Keep(0))
		srv.On(lockMethod, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
			mu.Lock()
			p.arrivals = append(p.arrivals, time.Since(began))
			mu.Unlock()
			if !busy.CompareAndSwap(false, true) {
				return testserver.Fail(codes.Unavailable, "busy")
			}
			return testserver.OK().Before(func(context.Context) error {
				time.Sleep(10 * time.Millisecond)
				busy.Store(false)
				return nil
			})
		}))
		set := testkit.Must(policy.Parse("herd.yaml", []byte(file)))(t)
		var all sync.WaitGroup
		var served atomic.Int64
		for i := range clients {
			random := rand.New(rand.NewPCG(seed, uint64(i))) // one call draws from it
			retrier := testkit.Must(interceptor.New(set, interceptor.WithRandom(random.Float64)))(t)
			conn := srv.Dial(t, retrier.DialOptions()...)
			conn.Connect()
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Microsecond)))
				if conn.Invoke(ctx, lockMethod, &emptypb.Empty{}, &emptypb.Empty{}) == nil {
					served.Add(1)
				}
			})
		}
		all.Wait()
		p.served, p.took = int(served.Load()), time.Since(began)
	})
	return p
}

// herdKinds are the policies that the herd is played with.
var herdKinds = []struct{ name, settings, retry string }{
	{"no jitter", unlimited, "maxAttempts: 100, budget: NONE, jitter: NONE, backoffMultiplier: 2"},
	{"no jitter, growth FIXED", unlimited, "maxAttempts: 100, budget: NONE, jitter: NONE, growth: FIXED, backoffMultiplier: 1"},
	{"EQUAL", unlimited, "maxAttempts: 100, budget: NONE, jitter: EQUAL, backoffMultiplier: 2"},
	{"FULL", unlimited, "maxAttempts: 100, budget: NONE, jitter: FULL, backoffMultiplier: 2"},
	{"DECORRELATED", unlimited, "maxAttempts: 100, budget: NONE, jitter: DECORRELATED, backoffMultiplier: 2"},
	{"FULL, 5 attempts, the default budget", "", "maxAttempts: 5, backoffMultiplier: 2"},
}

const unlimited = "maxAttemptsLimit: 100\n"

// herds plays the herd with each policy, and draws the arrivals of its retries with and without jitter.
func herds(t *testing.T) (report.Table, report.Plot) {
	t.Helper()
	const plays = 5
	table := report.Table{
		Title:   "100 clients call at once a server that takes one request at a time, for 10 ms: means of 5 plays",
		Columns: []string{"backoff", "requests", "calls that succeed", "most requests in 20 ms, after the first", "until the last call ends, s"},
	}
	waves := report.Plot{Title: "Retries of 100 clients that called at once a server that takes one request at a time", XLabel: "s", YLabel: "retries in 50 ms"}
	for _, kind := range herdKinds {
		var sum play
		peaks := 0
		for seed := range plays {
			p := playHerd(t, herdPolicy(kind.settings, kind.retry), uint64(seed))
			if seed == 0 && (kind.name == "no jitter" || kind.name == "FULL") {
				waves.Series = append(waves.Series, rate(kind.name, p.arrivals[clients:]))
			}
			peaks += most(p.arrivals[clients:])
			sum.arrivals = append(sum.arrivals, p.arrivals...)
			sum.served, sum.took = sum.served+p.served, sum.took+p.took
		}
		table.Rows = append(table.Rows, []string{
			kind.name, fmt.Sprint(len(sum.arrivals) / plays), fmt.Sprint(sum.served / plays), fmt.Sprint(peaks / plays),
			fmt.Sprintf("%.1f", sum.took.Seconds()/plays),
		})
	}
	return table, waves
}

// rate returns how many arrive in each 50 ms of the first 8 seconds.
func rate(name string, arrivals []time.Duration) report.Series {
	const step, steps = 50 * time.Millisecond, 160
	s := report.Series{Name: name, X: make([]float64, steps), Y: make([]float64, steps)}
	for i := range steps {
		s.X[i] = (time.Duration(i) * step).Seconds()
	}
	for _, at := range arrivals {
		if i := int(at / step); i < steps {
			s.Y[i]++
		}
	}
	return s
}
