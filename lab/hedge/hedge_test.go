// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package hedge compares stagger's hedging with failsafe-go's. It does not run under the race detector: failsafe-go's
// attempts share one reply.
package hedge

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

var write = flag.Bool("write", false, "write the table into results.md")

const (
	method = "/stagger.hedge.v1.Shop/Get"
	calls  = 20_000
	ms     = time.Millisecond
)

// took returns the server's time for an attempt: for one call in a hundred, fifty times the usual.
func took(call string, attempt int) time.Duration {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", call, attempt)
	r := rand.New(rand.NewPCG(h.Sum64(), 7))
	if r.Float64() < 0.01 {
		return 250 * ms
	}
	return 2*ms + time.Duration(r.Float64()*float64(6*ms))
}

// staggers returns stagger's client. Its budget pays for a hedge of each twentieth call: four of five come too early, and
// earn nothing back.
func staggers(tb testing.TB, h spec.Hedge) []grpc.DialOption {
	tb.Helper()
	bucket := budget.Default()
	bucket.PerSuccess = 0.2
	h.MaxAttempts, h.HedgingDelay, h.Budget = 2, 20*ms, "hedges"
	set := testkit.Must(compiled.NewSet(spec.Config{
		Budgets: []spec.Budget{{Name: "hedges", Config: bucket}},
		Methods: []spec.MethodConfig{{
			Names:  []string{"/stagger.hedge.v1.Shop/Get"},
			Policy: spec.Policy{Hedge: &h},
		}},
	}))(tb)
	r := testkit.Must(interceptor.New(set))(tb)
	return r.DialOptions()
}

func failsafes(b hedgepolicy.Builder[any]) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithUnaryInterceptor(failsafegrpc.NewUnaryClientInterceptor(b.WithMaxHedges(1).Build())),
	}
}

// figures are the results of a client.
type figures struct {
	p50, p99, p999 time.Duration
	extra          float64 // requests beyond one a call, in percent
}

// measure makes all calls, one each half a millisecond, in virtual time.
func measure(t *testing.T, opts ...grpc.DialOption) (f figures) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var (
			mu       sync.Mutex // guards seen
			seen     = map[string]int{}
			requests int
		)
		srv := testserver.Start(t, testserver.Keep(0))
		srv.On(method, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			call := new(wrapperspb.StringValue)
			if err := proto.Unmarshal(a.Requests[0], call); err != nil {
				t.Error(err)
			}
			mu.Lock()
			requests++
			n := seen[call.GetValue()]
			seen[call.GetValue()]++
			mu.Unlock()
			return testserver.OK(&emptypb.Empty{}).Delay(took(call.GetValue(), n))
		}))
		conn := srv.Dial(t, opts...)
		times := make([]time.Duration, calls)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				began := time.Now()
				if err := conn.Invoke(t.Context(), method, wrapperspb.String(strconv.Itoa(i)), &emptypb.Empty{}); err != nil {
					t.Error(err)
				}
				times[i] = time.Since(began)
			})
			time.Sleep(ms / 2)
		}
		wg.Wait()
		slices.Sort(times)
		f = figures{times[calls/2], times[calls*99/100], times[calls*999/1000], float64(requests-calls) / calls * 100}
	})
	return f
}

// TestTailBesideFailsafe compares the tail latency with the peer's, for a fixed delay and for one by quantile. The tolerance
// is a twentieth: with one slow call in a hundred, p99 lies between the slowest fast calls and the fastest hedged ones, and
// moves with either.
func TestTailBesideFailsafe(t *testing.T) {
	testkit.Judge(t, func(one testing.TB) {
		none := measure(t, grpc.WithDisableRetry())
		t.Logf("%-28s %v", "no hedging", none)
		shown := report.Table{
			Title:   "p99, and requests beyond one for each call, if one call of a hundred is 50 times slower than the rest",
			Columns: []string{"hedged", "no hedging", "stagger", "failsafe-go"},
		}
		for _, row := range []struct {
			name         string
			ours, theirs []grpc.DialOption
		}{
			{"after 20 ms", staggers(t, spec.Hedge{}), failsafes(hedgepolicy.NewBuilderWithDelay[any](20 * ms))},
			{"at the 95th percentile", staggers(t, spec.Hedge{Quantile: 0.95, MinDelay: ms, MaxDelay: time.Second}), failsafes(hedgepolicy.NewBuilderWithDelayQuantile[any](0.95, 100, 20))},
		} {
			ours, theirs := measure(t, row.ours...), measure(t, row.theirs...)
			t.Logf("%-28s stagger %v, failsafe-go %v", row.name, ours, theirs)
			shown.Rows = append(shown.Rows, []string{row.name, none.tail(), ours.tail(), theirs.tail()})
			if ours.p99 > theirs.p99+theirs.p99/20 || ours.p999 > theirs.p999+theirs.p999/20 || ours.extra > theirs.extra {
				one.Errorf("%s: stagger %v; failsafe-go %v", row.name, ours, theirs)
			}
			if ours.p99 >= none.p99/4 {
				one.Errorf("%s: p99 %v; without hedging %v", row.name, ours.p99, none.p99)
			}
		}
		const page = "results.md"
		if *write {
			testkit.NoError(t, terminal.WriteInto(page, "hedge", []report.Table{shown}))
			return
		}
		off := map[string][]terminal.Off{}
		for _, column := range shown.Columns[1:] {
			off[column] = []terminal.Off{{Rel: 0.1}, {Abs: 0.5}}
		}
		for _, line := range testkit.Must(terminal.Differences(page, "hedge", []report.Table{shown}, off))(t) {
			one.Errorf("%s: make hedge writes it", line)
		}
	})
}

// tail shows p99 and the requests beyond one a call.
func (f figures) tail() string {
	return fmt.Sprintf("%.1f ms, %.1f %%", float64(f.p99)/float64(ms), f.extra)
}

func (f figures) String() string {
	return fmt.Sprintf("p50 %v p99 %v p999 %v, %.1f %% extra", f.p50.Round(ms/10), f.p99.Round(ms/10), f.p999.Round(ms/10), f.extra)
}
