// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/lab/outage"
	"github.com/stagger-go/stagger/lab/peers"
	"github.com/stagger-go/stagger/policy"
)

// readmePolicy returns the policy of the README, and the method that it is for.
func readmePolicy(t testing.TB) (set *policy.Set, method string) {
	t.Helper()
	_, text, _ := strings.Cut(string(testkit.Must(os.ReadFile(readme))(t)), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	return testkit.Must(policy.Parse("retry.yaml", []byte(text)))(t), "/acme.orders.v1.OrderService/GetOrder"
}

// hangRows are the kinds of response times with which one of four backends hangs, from some moment on.
var hangRows = []struct {
	times string
	rate  float64 // calls a second
	time  sim.Distribution
	step  time.Duration // responses take so much longer from that moment on
}{
	{times: "constant 20 ms", rate: 100, time: sim.Distribution{A: 20 * ms}},
	{times: "median 40 ms, p99 200 ms", rate: 2, time: logNormal(40*ms, 200*ms)},
	{times: "median 40 ms, p99 200 ms", rate: 100, time: logNormal(40*ms, 200*ms)},
	{times: "median 40 ms, p99 200 ms", rate: 1000, time: logNormal(40*ms, 200*ms)},
	{times: "median 100 ms, p99 300 ms", rate: 100, time: logNormal(100*ms, 300*ms)},
	{times: "median 30 ms, p99 150 ms", rate: 20, time: logNormal(30*ms, 150*ms)},
	{times: "20 ms, of a hundredth 250 ms", rate: 1000, time: sim.Distribution{
		Shape: sim.ShapeBimodal, Usual: &sim.Distribution{A: 20 * ms}, Slow: &sim.Distribution{A: 250 * ms}, Part: 0.01,
	}},
	{times: "a cache: 2 ms, of a fifth median 80 ms, p99 250 ms", rate: 100, time: sim.Distribution{
		Shape: sim.ShapeBimodal, Usual: &sim.Distribution{A: 2 * ms}, Slow: new(logNormal(80*ms, 250*ms)), Part: 0.2,
	}},
	{times: "10 ms, and 110 ms from the same moment on", rate: 100, time: sim.Distribution{A: 10 * ms}, step: 100 * ms},
}

func logNormal(median, p99 time.Duration) sim.Distribution {
	return sim.Distribution{Shape: sim.ShapeLogNormal, A: median, B: p99}
}

// hangs returns the storm of a row. Its servers have room for all.
func hangs(method string, deadline time.Duration, rate float64, times sim.Distribution, trouble ...sim.Fault) storm {
	s := &sim.Scenario{
		Title: "one of four", Seed: 1, Recovery: sim.Recovery{Success: 0.99, Window: 250 * ms},
		Services: []sim.Service{{Name: "shop", Backends: 4, Workers: 1000, Time: &times}},
		Fleets: []sim.Fleet{{Name: "users", Clients: 1, Rate: rate, Calls: []sim.Call{{
			Service: "shop", Method: method, Deadline: deadline,
		}}}},
		Phases: []sim.Phase{
			{Name: "calm", Kind: sim.KindLead, Length: max(2*time.Second, time.Duration(60/rate*float64(time.Second))), Load: 1},
			{Name: "trouble", Length: max(4*time.Second, time.Duration(1500/rate*float64(time.Second))), Load: 1, Faults: trouble},
		},
	}
	return storm{Scenario: s}
}

// planClients returns clients with the settings of a policy with attempt timeouts: those that have none leave it out.
func planClients(t testing.TB, set *policy.Set, method string) []client {
	t.Helper()
	p := compiled.Of(set.Lookup(method))
	plan := peers.Plan{
		Attempts: p.Retry.MaxAttempts, Initial: p.Retry.Backoff.Initial, Max: p.Retry.Backoff.Max, Jitter: jitter,
		AttemptTimeout: p.Retry.PerAttemptTimeout,
	}
	dials := func(options ...grpc.DialOption) func(storm) (outage.Options, error) {
		return func(storm) (outage.Options, error) { return outage.Options{Dial: options}, nil }
	}
	return []client{
		{name: noRetriesName, options: noRetries},
		{name: "gRPC", options: dials(peers.ServiceConfig(plan, `"loadBalancingConfig": [{"round_robin": {}}], `))},
		{name: "go-grpc-middleware", options: dials(peers.Intercepted(retry.UnaryClientInterceptor(peers.Middleware(plan)...))...)},
		{name: "failsafe-go", options: dials(peers.Intercepted(peers.Failsafe(plan, 0))...)},
		{name: "stagger", ours: true, options: func(storm) (outage.Options, error) {
			retrier, err := interceptor.New(set)
			if err != nil {
				return outage.Options{}, err
			}
			return outage.Options{Dial: retrier.DialOptions()}, nil
		}},
	}
}

// While one of four backends hangs, README's policy brings as much as the peers with the same settings, whatever the spread of the
// response times and however many calls a client makes, and with no more requests.
func TestOneHangsBesideItsPeers(t *testing.T) {
	t.Parallel()
	set, method := readmePolicy(t)
	shown := report.Table{
		Title: "Success in %, and requests at the servers for each call", Rows: make([][]string, len(hangRows)),
		Columns: []string{"response times", "calls/s"},
	}
	off := map[string][]terminal.Off{}
	for _, c := range planClients(t, set, method) {
		shown.Columns, off[c.name] = append(shown.Columns, c.name), []terminal.Off{{Abs: 2}, {Abs: 0.05}}
	}
	t.Run("rows", func(t *testing.T) {
		for i, row := range hangRows {
			t.Run(fmt.Sprintf("%s at %v", row.times, row.rate), func(t *testing.T) {
				t.Parallel()
				trouble := []sim.Fault{{Service: "shop", Backends: []int{0}, Hang: true}}
				if row.step > 0 {
					trouble = append(trouble, sim.Fault{Service: "shop", Slow: &sim.Slow{Part: 1, By: &sim.Distribution{A: row.step}}})
				}
				s := hangs(method, set.Lookup(method).Timeout(), row.rate, row.time, trouble...)
				testkit.Judge(t, func(one testing.TB) {
					o := play(t, s, planClients(t, set, method))
					cells := []string{row.times, fmt.Sprint(row.rate)}
					for _, r := range o.results {
						cells = append(cells, fmt.Sprintf("%.1f, %.2f", 100*r.Success, r.PerCall))
					}
					shown.Rows[i] = cells
					own := o.results[4]
					for k := 2; k < 4; k++ {
						if peer := o.results[k]; own.Success < peer.Success-0.02 || own.PerCall > peer.PerCall+0.01 {
							one.Errorf("success %s, %.2f requests a call; want at most two points below %s of %s, and no more than its %.2f",
								percent(own), own.PerCall, percent(peer), o.clients[k].name, peer.PerCall)
						}
					}
					if *write {
						return
					}
					part := shown
					part.Rows = shown.Rows[i : i+1]
					agrees(one, results, "hangs", off, part)
				})
			})
		}
	})
	if *write && !slices.ContainsFunc(shown.Rows, func(row []string) bool { return row == nil }) {
		put(t, results, "hangs", shown)
	}
}
