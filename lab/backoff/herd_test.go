// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const lockMethod = "/stagger.backoff.v1.Lock/Take"

// herdConfig is a config whose policy is retry.
func herdConfig(retry policy.RetryPolicy) policy.Config {
	return policy.Config{
		MethodConfig:     []policy.MethodConfig{{Name: []string{lockMethod}, RetryPolicy: &retry}},
		MaxAttemptsLimit: 100,
	}
}

// unlimited returns a policy whose calls have 100 attempts and no budget.
func unlimited(jitter backoff.Jitter, growth backoff.Growth, initial time.Duration) policy.RetryPolicy {
	return policy.RetryPolicy{
		MaxAttempts: 100, Budget: "NONE", InitialBackoff: initial, MaxBackoff: 2 * time.Second, Jitter: jitter, Growth: growth,
	}
}

// play is what a server saw of a herd.
type play struct {
	arrivals []time.Duration
	served   int
	took     time.Duration   // until the last call ended
	reasons  []policy.Reason // why the others ended
}

// playHerd lets 100 clients call a server within a tenth of a millisecond. The server takes one request at a time, for 10 ms, and refuses all
// others. The clients begin a microsecond apart, so that each play of a seed is the same.
func playHerd(t *testing.T, config policy.Config, seed uint64) (p play) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Add(time.Second)
		var mu sync.Mutex // guards p
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
		set := testkit.Must(policy.New(config))(t)
		var all sync.WaitGroup
		ends := interceptor.WithObserver(interceptor.Observer{CallEnd: func(_ context.Context, e interceptor.CallEnd) {
			mu.Lock()
			defer mu.Unlock()
			if e.Err == nil {
				p.served++
			} else {
				p.reasons = append(p.reasons, e.Reason)
			}
		}})
		for i := range clients {
			random := rand.New(rand.NewPCG(seed, uint64(i))) // one call draws from it
			retrier := testkit.Must(interceptor.New(set, interceptor.WithRandom(random.Float64), ends))(t)
			conn := srv.Dial(t, retrier.DialOptions()...)
			conn.Connect()
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Microsecond)))
				_ = conn.Invoke(ctx, lockMethod, &emptypb.Empty{}, &emptypb.Empty{}) // ends has its result
			})
		}
		all.Wait()
		p.took = time.Since(began)
	})
	return p
}

// herdKinds are the policies that the herd is played with. Those with a first wait in their names wait for 50 ms on average before the first
// retry, as FULL does.
var herdKinds = []struct {
	name  string
	retry policy.RetryPolicy
}{
	{"no jitter", unlimited(backoff.JitterNone, "", 0)},
	{"no jitter, growth FIXED", unlimited(backoff.JitterNone, backoff.GrowthFixed, 0)},
	{"EQUAL", unlimited(backoff.JitterEqual, "", 0)},
	{"FULL", unlimited(backoff.JitterFull, "", 0)},
	{"DECORRELATED", unlimited(backoff.JitterDecorrelated, "", 0)},
	{"EQUAL, first wait 67 ms", unlimited(backoff.JitterEqual, "", equalInitial)},
	{"DECORRELATED, first wait 25 ms", unlimited(backoff.JitterDecorrelated, "", decorrelatedInitial)},
	{"FULL, 5 attempts, the default budget", policy.RetryPolicy{MaxAttempts: 5, MaxBackoff: 2 * time.Second}},
	{"the default: FULL, 3 attempts, up to 1 s, the default budget", policy.RetryPolicy{}},
}

// herds plays the herd with each policy, and draws the arrivals of its retries with and without jitter.
func herds(t *testing.T) (report.Table, report.Plot) {
	t.Helper()
	const plays = 5
	table := report.Table{
		Title: "100 clients call at once a server that takes one request at a time, for 10 ms: means of 5 plays",
		Columns: []string{
			"backoff", "requests", "calls that succeed", "the others end with", "most requests in 20 ms, after the first", "until the last call ends, s",
		},
	}
	waves := report.Plot{Title: "Retries of 100 clients that called at once a server that takes one request at a time", XLabel: "s", YLabel: "retries in 50 ms"}
	for _, kind := range herdKinds {
		var sum play
		peaks := 0
		for seed := range plays {
			p := playHerd(t, herdConfig(kind.retry), uint64(seed))
			if seed == 0 && (kind.name == "no jitter" || kind.name == "FULL") {
				waves.Series = append(waves.Series, rate(kind.name, p.arrivals[clients:]))
			}
			peaks += most(p.arrivals[clients:])
			sum.arrivals = append(sum.arrivals, p.arrivals...)
			sum.reasons = append(sum.reasons, p.reasons...)
			sum.served, sum.took = sum.served+p.served, sum.took+p.took
		}
		table.Rows = append(table.Rows, []string{
			kind.name, fmt.Sprint(len(sum.arrivals) / plays), fmt.Sprint(sum.served / plays), reasons(sum.reasons), fmt.Sprint(peaks / plays),
			fmt.Sprintf("%.1f", sum.took.Seconds()/plays),
		})
	}
	return table, waves
}

// reasons returns each of some reasons once.
func reasons(all []policy.Reason) string {
	slices.Sort(all)
	var texts []string
	for _, r := range slices.Compact(all) {
		texts = append(texts, "`"+string(r)+"`")
	}
	return strings.Join(texts, ", ")
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

// wantWavesTold compares the words below the plot, and the README's, with the plot.
func wantWavesTold(t *testing.T, full report.Series) {
	t.Helper()
	later := full.Y[5:]
	told := fmt.Sprintf("at most %v arrive in 50 ms, and at most %v after 0.25 s](", slices.Max(full.Y), slices.Max(later))
	for _, page := range []string{"../../README.md", "../../docs/evidence/backoff.md"} {
		if text := testkit.Must(os.ReadFile(page))(t); !strings.Contains(string(text), told) {
			t.Errorf("%s doesn't say of the plot: %s", page, told)
		}
	}
}
