// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outages

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/lab/peers"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// client is a way to retry that docs/evidence/outages.md compares.
type client struct {
	name string
	dial func(t *testing.T, attemptTimeout time.Duration) []grpc.DialOption
}

func peerPlan(attemptTimeout time.Duration) peers.Plan {
	return peers.Plan{Attempts: 4, Initial: 100 * time.Millisecond, Max: time.Second, Jitter: 0.2, AttemptTimeout: attemptTimeout}
}

func grpcClient(name, more string) client {
	return client{name, func(_ *testing.T, attemptTimeout time.Duration) []grpc.DialOption {
		return []grpc.DialOption{reconnects, peers.ServiceConfig(peerPlan(attemptTimeout), more)}
	}}
}

func failsafeClient(name string, share float64) client {
	return client{name, func(_ *testing.T, attemptTimeout time.Duration) []grpc.DialOption {
		return failsafes(peerPlan(attemptTimeout), share)
	}}
}

// staggerClient has the page's policy, with more keys of the retryPolicy and of its entry.
func staggerClient(name, retryKeys, entryKeys string) client {
	return client{name, func(t *testing.T, attemptTimeout time.Duration) []grpc.DialOption {
		t.Helper()
		timeout := ""
		if attemptTimeout > 0 {
			timeout = fmt.Sprintf(`, "perAttemptTimeout": "%.3fs"`, attemptTimeout.Seconds())
		}
		file := `{"methodConfig": [{"name": [{"service": "acme.orders.v1.OrderService", "method": "GetOrder"}]` + entryKeys + `,
			"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]` + retryKeys + timeout + `}}]}`
		r := testkit.Must(interceptor.New(testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)))(t)
		t.Cleanup(func() { r.Close() })
		return r.DialOptions()
	}}
}

var (
	waitingGRPC = client{"gRPC with `waitForReady: true`", func(t *testing.T, attemptTimeout time.Duration) []grpc.DialOption {
		t.Helper()
		return append(grpcClient("", "").dial(t, attemptTimeout), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	}}
	throttledGRPC = grpcClient("gRPC with `retryThrottling`", `"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},`)
	middleware    = client{"go-grpc-middleware", func(_ *testing.T, attemptTimeout time.Duration) []grpc.DialOption {
		return middlewares(peerPlan(attemptTimeout))
	}}
	failsafeGo = failsafeClient("failsafe-go", 0)
	budgeted   = failsafeClient("failsafe-go with `WithBudget`", 0.2)
	stagger    = staggerClient("stagger", "", "")
	patient    = staggerClient("… with `maxConnectionWait: 5s`", `, "maxConnectionWait": "5s"`, "")
	ready      = staggerClient("… with `waitForReady: true`", "", `, "waitForReady": true`)
)

// TestDocsAreCurrent_ComingFrom plays what docs/evidence/outages.md says of restarts, and of the load in an outage.
func TestDocsAreCurrent_ComingFrom(t *testing.T) {
	const plays = 20
	downs := []time.Duration{time.Second, 2500 * time.Millisecond, 5 * time.Second}
	restarts := report.Table{Title: "Calls that fail, and the longest call", Columns: []string{"client"}}
	off := map[string][]terminal.Off{}
	for _, down := range downs {
		column := fmt.Sprintf("down for %v s", down.Seconds())
		restarts.Columns = append(restarts.Columns, column)
		off[column] = []terminal.Off{{Abs: 30}, {Abs: 1}} // gRPC's jitter decides when the connection is back
	}
	none := map[string]time.Duration{stagger.name: time.Second, patient.name: 2500 * time.Millisecond, ready.name: 2500 * time.Millisecond}
	testkit.Judge(t, func(one testing.TB) {
		restarts.Rows = nil
		for _, c := range []client{grpcClient("gRPC", ""), waitingGRPC, middleware, failsafeGo, stagger, patient, ready} {
			row := []string{c.name}
			for _, down := range downs {
				share, longest := 0.0, time.Duration(0)
				for range plays {
					failed, calls, took := restart(t, c, down)
					share += 100 * float64(failed) / float64(calls) / plays
					longest = max(longest, took)
				}
				if down <= none[c.name] && share > 0 {
					one.Errorf("%s: %.1f %% of the calls fail while the server is down for %v; want none", c.name, share, down)
				}
				row = append(row, fmt.Sprintf("%.0f %%, %.1f s", share, longest.Seconds()))
			}
			restarts.Rows = append(restarts.Rows, row)
		}
		agree(one, page, "restarts", restarts, off)
	})
	load := report.Table{
		Title:   "Requests for each call, and calls that succeed",
		Columns: []string{"client", "all requests fail", "each third one fails"},
	}
	for _, column := range load.Columns[1:] {
		off[column] = []terminal.Off{{Abs: 0.1}, {Abs: 3}}
	}
	testkit.Judge(t, func(one testing.TB) {
		load.Rows = nil
		for _, c := range []client{grpcClient("gRPC", ""), throttledGRPC, middleware, failsafeGo, budgeted, stagger} {
			row := []string{c.name}
			for _, every := range []int64{1, 3} {
				perCall, success := failing(t, c, every)
				row = append(row, fmt.Sprintf("%.2f, %.0f %%", perCall, success))
			}
			load.Rows = append(load.Rows, row)
		}
		agree(one, page, "load", load, off)
	})
}

// agree compares a table with a page, or writes it.
func agree(t testing.TB, page, mark string, table report.Table, off map[string][]terminal.Off) {
	t.Helper()
	t.Logf("\n%s", terminal.Markdown(table))
	if *write {
		testkit.NoError(t, terminal.WriteInto(page, mark, []report.Table{table}))
		return
	}
	for _, line := range testkit.Must(terminal.Differences(page, mark, []report.Table{table}, off))(t) {
		t.Errorf("%s: make outages writes it", line)
	}
}

// restart returns how many of the calls fail that begin while the only server is down, and how long the longest takes: 50 calls a second
// with deadlines of 5 s.
func restart(t *testing.T, c client, down time.Duration) (failed, calls int, longest time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t, testserver.Keep(1))
		server.On("*", testserver.OK().Delay(work))
		conn := server.Dial(t, c.dial(t, 0)...)
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
		}
		testkit.NoError(t, call())
		var mu sync.Mutex
		var running sync.WaitGroup
		server.Down()
		for began := time.Now(); time.Since(began) < down; calls++ {
			running.Go(func() {
				from := time.Now()
				err := call()
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, time.Since(from))
				if err != nil {
					failed++
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
		server.Up()
		running.Wait()
	})
	return failed, calls, longest
}

// failing returns the requests for each call, and the success in percent, while every so many requests fail for
// 10 s: 100 calls a second, with deadlines of 2 s.
func failing(t *testing.T, c client, every int64) (perCall, success float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t, testserver.Keep(1))
		server.On("*", testserver.OK().Delay(work))
		conn := server.Dial(t, c.dial(t, 0)...)
		call(t, conn, 5*time.Second)
		before := server.Count(method)
		var n atomic.Int64
		server.On("*", testserver.Func(func(_ context.Context, _ testserver.Attempt) testserver.Step {
			if n.Add(1)%every == 0 {
				return testserver.Fail(codes.Unavailable).Delay(work)
			}
			return testserver.OK().Delay(work)
		}))
		good, all := call(t, conn, 10*time.Second)
		perCall = float64(server.Count(method)-before) / float64(all)
		success = 100 * float64(good) / float64(all)
	})
	return perCall, success
}

// TestFirstCall is what docs/coming-from.md says of the first call of a process, whose first attempt hangs: others give it up when its
// timeout passes, and so does stagger with RETRY. By default, stagger sends no attempt in parallel before the method's fifth response.
func TestFirstCall(t *testing.T) {
	replaces := staggerClient("stagger, RETRY", `, "onAttemptTimeout": "RETRY"`, "")
	for _, row := range []struct {
		client
		before int // calls that succeed
		want   codes.Code
	}{
		{middleware, 0, codes.OK},
		{failsafeGo, 0, codes.OK},
		{replaces, 0, codes.OK},
		{stagger, 0, codes.DeadlineExceeded},
		{stagger, 4, codes.DeadlineExceeded},
		{stagger, 5, codes.OK},
	} {
		t.Run(fmt.Sprint(row.name, ", after ", row.before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				conn := server.Dial(t, row.dial(t, 200*time.Millisecond)...)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				for range row.before {
					testkit.NoError(t, conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}))
				}
				server.On("*", testserver.Hang().Times(1), testserver.OK())
				err := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
				attempts := server.Count(method) - row.before
				if want := map[bool]int{true: 2, false: 1}[row.want == codes.OK]; status.Code(err) != row.want || attempts != want {
					t.Errorf("%v after %d attempts; want %v after %d", err, attempts, row.want, want)
				}
			})
		})
	}
}

// With waitForReady: false, calls don't wait for a server that restarts.
func TestRestart_NoWait(t *testing.T) {
	failed, calls, longest := restart(t, staggerClient("no wait", "", `, "waitForReady": false`), time.Second)
	if failed == 0 || longest > 700*time.Millisecond { // the sum of the longest backoffs
		t.Errorf("%d of %d calls fail, and the longest takes %v; want errors within 0.7 s", failed, calls, longest)
	}
}
