// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package outages plays what happens to servers in production, over real gRPC in virtual time, and writes the tables of
// docs/evidence/outages.md and results.md.
package outages

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/stagger-go/stagger/elsewhere" // the load balancing policy of the file
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/lab/peers"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

var write = flag.Bool("write", false, "write the tables")

func TestMain(m *testing.M) {
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const (
	method   = "/acme.orders.v1.OrderService/GetOrder"
	interval = 10 * time.Millisecond // between calls
	work     = 10 * time.Millisecond // of a request
	patience = 2 * time.Second       // of a user
	calm     = 12 * time.Second      // before the trouble
	after    = 40 * time.Second      // after it: gRPC's own delays between attempts to connect reach 30 s in a minute
)

// trouble happens to the servers of the last service, and takes some time.
type trouble struct {
	name    string
	servers int
	before  func(s []*testserver.Server) // clients connect
	happen  func(s []*testserver.Server)
	length  time.Duration // if happen doesn't wait
	plays   int           // 0: one
}

var troubles = []trouble{
	killed(3*time.Second, 6), killed(10*time.Second, 1), killed(time.Minute, 1),
	{name: "one of three fails for 20 s", servers: 3, length: 20 * time.Second, happen: func(s []*testserver.Server) {
		s[0].On("*", testserver.Fail(codes.Unavailable))
	}},
	{name: "one of three hangs for 20 s", servers: 3, length: 20 * time.Second, happen: func(s []*testserver.Server) {
		s[0].On("*", testserver.Hang())
	}},
	{name: "one of three is killed for 20 s", servers: 3, length: 20 * time.Second, happen: func(s []*testserver.Server) { s[0].Down() }},
	{name: "three are restarted in turn, 3 s each", servers: 3, happen: func(list []*testserver.Server) {
		for _, s := range list {
			s.Down()
			time.Sleep(3 * time.Second)
			s.Up()
			time.Sleep(2 * time.Second)
		}
	}},
	{name: "it starts 10 s after its clients", servers: 1, length: 10 * time.Second, before: func(s []*testserver.Server) { s[0].Down() }},
}

// killed has several plays, if gRPC's jitter decides whether calls wait for long enough: in plays of 3 s, stagger serves 10 to 30
// % of them.
func killed(length time.Duration, plays int) trouble {
	return trouble{
		name: fmt.Sprintf("killed for %d s", int(length.Seconds())), servers: 1, length: length, plays: plays,
		happen: func(s []*testserver.Server) { s[0].Down() },
	}
}

// player is how services call each other.
type player struct {
	name    string
	options func(t *testing.T) (dial []grpc.DialOption, serve []grpc.ServerOption)
}

// gRPC's own, without those of the test server, which have no jitter.
var reconnects = grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 20 * time.Second})

func middlewares(plan peers.Plan) []grpc.DialOption {
	return append(peers.Intercepted(retry.UnaryClientInterceptor(peers.Middleware(plan)...)), reconnects)
}

func failsafes(plan peers.Plan, share float64) []grpc.DialOption {
	return append(peers.Intercepted(peers.Failsafe(plan, share)), reconnects)
}

const retries = `"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
	"retryableStatusCodes": ["UNAVAILABLE"]`

var players = []player{
	{"no retries", func(*testing.T) ([]grpc.DialOption, []grpc.ServerOption) {
		return []grpc.DialOption{grpc.WithDisableRetry(), reconnects}, nil
	}},
	{"gRPC, throttled", func(*testing.T) ([]grpc.DialOption, []grpc.ServerOption) {
		return []grpc.DialOption{
			reconnects,
			grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
				"methodConfig": [{"name": [{}], ` + retries + `}}]}`),
		}, nil
	}},
	{"stagger", func(t *testing.T) ([]grpc.DialOption, []grpc.ServerOption) {
		set := testkit.Must(policy.Parse("retry.yaml", []byte(`{
			"loadBalancingConfig": [{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}],
			"methodConfig": [{"name": [{"service": "acme.orders.v1.OrderService", "method": "GetOrder"}],
				`+retries+`, "perAttemptTimeout": "0.2s"}}]}`)))(t)
		r := testkit.Must(interceptor.New(set))(t)
		t.Cleanup(func() { r.Close() })
		return r.DialOptions(), r.ServerOptions()
	}},
}

// ended is a user's call.
type ended struct {
	at, took time.Duration
	ok       bool
}

// figures are those of a player in a trouble.
type figures struct {
	success   float64 // of the calls that begin in the trouble, %
	p50, p99  time.Duration
	perCall   float64       // requests that reach a service, of the one that gets most
	recovered time.Duration // the last call that fails begins so long after the end of the trouble
}

func (f figures) String() string {
	return fmt.Sprintf("%.1f %%, %s / %s ms, %.2f, %.1f s", f.success, millis(f.p50), millis(f.p99), f.perCall, f.recovered.Seconds())
}

func millis(d time.Duration) string {
	return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10)
}

// playAll returns the averages of all plays of a trouble, and the latest recovery.
func playAll(t *testing.T, p player, tr trouble) (mean figures) {
	t.Helper()
	n := max(tr.plays, 1)
	for range n {
		f := play(t, p, tr)
		mean.success += f.success / float64(n)
		mean.perCall += f.perCall / float64(n)
		mean.p50 += f.p50 / time.Duration(n)
		mean.p99 += f.p99 / time.Duration(n)
		mean.recovered = max(mean.recovered, f.recovered)
	}
	return mean
}

// play returns what a player's users see. They call a gateway, which calls orders, which calls the service in trouble.
func play(t *testing.T, p player, tr trouble) (f figures) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var list []*testserver.Server
		for range tr.servers {
			s := testserver.Start(t, testserver.Keep(1))
			s.On("*", testserver.OK().Delay(work))
			list = append(list, s)
		}
		if tr.before != nil {
			tr.before(list)
		}
		dial, serve := p.options(t)
		conn := testkit.Must(testserver.DialAll(list, dial...))(t)
		t.Cleanup(func() { _ = conn.Close() })
		orders := relay(t, conn, serve)
		dial, serve = p.options(t)
		gateway := relay(t, orders.Dial(t, dial...), serve)
		users := gateway.Dial(t, grpc.WithDisableRetry())
		for _, c := range []*grpc.ClientConn{conn, users} {
			c.Connect()
		}

		var mu sync.Mutex
		var calls []ended // guarded by mu
		var running sync.WaitGroup
		begin := time.Now()
		load := make(chan struct{})
		running.Go(func() {
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for {
				select {
				case <-load:
					return
				case <-tick.C:
				}
				running.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					at := time.Now()
					err := users.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
					mu.Lock()
					defer mu.Unlock()
					calls = append(calls, ended{at.Sub(begin), time.Since(at), err == nil})
				})
			}
		})
		if tr.before == nil {
			time.Sleep(calm)
		}
		from := time.Since(begin)
		before := requests(orders, list)
		if tr.happen != nil {
			tr.happen(list)
		}
		time.Sleep(tr.length)
		most := 0
		for i, n := range requests(orders, list) {
			most = max(most, n-before[i])
		}
		to := time.Since(begin)
		for _, s := range list {
			s.On("*", testserver.OK().Delay(work))
			s.Up()
		}
		time.Sleep(after)
		close(load)
		running.Wait()
		f = judge(calls, from, to, most)
	})
	return f
}

// call makes a user's call each interval, and returns how many of them succeed.
func call(t *testing.T, conn *grpc.ClientConn, length time.Duration) (good, all int) {
	t.Helper()
	var ok atomic.Int64
	var running sync.WaitGroup
	for range int(length / interval) {
		all++
		running.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}) == nil {
				ok.Add(1)
			}
		})
		time.Sleep(interval)
	}
	running.Wait()
	return int(ok.Load()), all
}

// requests returns how many have reached orders, and the servers behind it.
func requests(orders *testserver.Server, list []*testserver.Server) []int {
	last := 0
	for _, s := range list {
		last += s.Count(method)
	}
	return []int{orders.Count(method), last}
}

func judge(calls []ended, from, to time.Duration, requests int) (f figures) {
	var took []time.Duration
	good := 0
	for _, c := range calls {
		if c.at >= to && !c.ok {
			f.recovered = max(f.recovered, c.at-to)
		}
		if c.at < from || c.at >= to {
			continue
		}
		took = append(took, c.took)
		if c.ok {
			good++
		}
	}
	slices.Sort(took)
	f.success = 100 * float64(good) / float64(len(took))
	f.p50, f.p99 = took[len(took)/2], took[len(took)*99/100]
	f.perCall = float64(requests) / float64(len(took))
	return f
}

// relay starts a service that calls the next one.
func relay(t *testing.T, next *grpc.ClientConn, options []grpc.ServerOption, more ...testserver.Option) *testserver.Server {
	t.Helper()
	s := testserver.Start(t, append(more, testserver.ServerOptions(options...), testserver.Keep(1))...)
	s.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		if err := next.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			return testserver.Fail(status.Code(err), err.Error())
		}
		return testserver.OK()
	}))
	return s
}

const (
	page       = "../../docs/evidence/outages.md"
	begin, end = "<!-- outages -->\n", "<!-- /outages -->"
)

// longestReconnect is the longest delay of DialOptions with gRPC's jitter of 0.2.
const longestReconnect = 3600 * time.Millisecond

// TestDocsAreCurrent plays all troubles: the page has their figures, and stagger serves as many calls as the others, or nearly,
// with few more requests.
func TestDocsAreCurrent(t *testing.T) {
	var table strings.Builder
	table.WriteString("| fault |")
	for _, p := range players {
		fmt.Fprintf(&table, " %s |", p.name)
	}
	table.WriteString("\n| --- |" + strings.Repeat(" --- |", len(players)) + "\n")
	kept := rows(t)
	for _, tr := range troubles {
		fmt.Fprintf(&table, "| %s |", tr.name)
		all := make([]figures, len(players))
		testkit.Judge(t, func(one testing.TB) {
			for i, p := range players {
				all[i] = playAll(t, p, tr)
				if !*write && !near(all[i], kept[tr.name], i) {
					one.Errorf("%s, %s: %v; the page has %v: make outages writes it", tr.name, p.name, all[i], kept[tr.name])
				}
			}
			ours := all[len(all)-1]
			for i, other := range all[:len(all)-1] {
				if ours.success < other.success-1 || ours.recovered > longestReconnect || ours.perCall > 1.5 {
					one.Errorf("%s: stagger %v; %s %v", tr.name, ours, players[i].name, other)
				}
			}
		})
		for _, f := range all {
			fmt.Fprintf(&table, " %v |", f)
		}
		table.WriteString("\n")
	}
	if !*write {
		return
	}
	text := string(testkit.Must(os.ReadFile(page))(t))
	head, rest, _ := strings.Cut(text, begin)
	_, rest, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s lacks the marks of the table", page)
	}
	testkit.NoError(t, os.WriteFile(page, []byte(head+begin+table.String()+end+rest), 0o600))
}

// rows returns the cells of the page's table, by their trouble.
func rows(t *testing.T) map[string][]string {
	t.Helper()
	_, text, _ := strings.Cut(string(testkit.Must(os.ReadFile(page))(t)), begin)
	text, _, _ = strings.Cut(text, end)
	list := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		list[cells[0]] = cells[1:]
	}
	return list
}

// near reports whether a cell has about these figures. gRPC's jitter can't be seeded: it decides when a connection is back, and so how
// many calls of a short outage still succeed.
func near(f figures, cells []string, i int) bool {
	if i >= len(cells) {
		return false
	}
	var p50, p99 int
	var success, perCall, recovered float64
	if _, err := fmt.Sscanf(cells[i], "%f %%, %d / %d ms, %f, %f s", &success, &p50, &p99, &perCall, &recovered); err != nil {
		return false
	}
	within := func(got, want, share, least float64) bool {
		return cmp.Compare(max(got, want)-min(got, want), max(share*want, least)) <= 0
	}
	return within(f.success, success, 0, 25) && within(f.perCall, perCall, 0.1, 0.05) &&
		within(float64(f.p50.Milliseconds()), float64(p50), 0.3, 30) && within(float64(f.p99.Milliseconds()), float64(p99), 0.3, 300)
}
