// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const checkStock = "/acme.orders.v1.OrderService/CheckStock"

// day is a service in trouble, and its clients. What it leaves out is four backends, of which one hangs, and a process that makes 100 calls
// a second by README's policy.
type day struct {
	retry, entry, file string // more keys of the policy, of its entry and of its file
	stock              string // half of the calls are of a second method, whose policy has these keys

	time, deadline, faults, lifetime, length string
	backends, workers, clients, load, rate   int
}

// policy returns the policy file.
func (d day) policy() string {
	text := d.file + "methodConfig:" + orderPolicy("GetOrder", cmp.Or(d.retry, "perAttemptTimeout: 0.4s"), d.entry)
	if d.stock != "" {
		text += orderPolicy("CheckStock", d.stock, "")
	}
	return text
}

func orderPolicy(method, retry, entry string) string {
	return fmt.Sprintf(`
  - name: [{service: acme.orders.v1.OrderService, method: %s}]
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], %s}
    %s`, method, retry, entry)
}

// outcome is how the calls of a day end: those of GetOrder that succeed, the time that 99 % of all stay under, and why most of those that
// fail got no other attempt. requests are those for each call.
type outcome struct {
	success  float64
	requests float64
	p99      time.Duration
	reason   policy.Reason
}

func (d day) play(t *testing.T) outcome {
	t.Helper()
	call := func(method string) string {
		return fmt.Sprintf("{service: orders, method: %s, policy: retry, deadline: %s}", method, cmp.Or(d.deadline, "2s"))
	}
	calls := call(getOrder)
	if d.stock != "" {
		calls += ", " + call(checkStock)
	}
	if d.lifetime != "" {
		d.lifetime = ", lifetime: " + d.lifetime
	}
	scenario := fmt.Sprintf(`
title: a retry is refused
policies: {retry: retry.yaml}
services: [{name: orders, backends: %d, workers: %d, queue: 375, time: {%s}}]
fleets: [{name: users, clients: %d, rate: %d%s, calls: [%s]}]
phases:
  - {name: calm, kind: LEAD, length: 10s}
  - {name: trouble, length: %s, load: %d, faults: [%s]}
  - {name: after, kind: AFTER, length: 1s}
`, cmp.Or(d.backends, 4), cmp.Or(d.workers, 1000), cmp.Or(d.time, "lognormal: {median: 20ms, p99: 60ms}"), cmp.Or(d.clients, 1),
		cmp.Or(d.rate, 100), d.lifetime, calls, cmp.Or(d.length, "20s"), cmp.Or(d.load, 1),
		cmp.Or(d.faults, "{service: orders, backends: [0], hang: true}"))
	s := testkit.Must(sim.Parse("day.yaml", []byte(scenario), func(string) ([]byte, error) { return []byte(d.policy()), nil }))(t)
	fleet := testkit.Must(s.Run(t.Context(), sim.Options{}))(t).Runs[0].Fleets[0]
	o := outcome{success: fleet.Success, requests: fleet.PerCall, p99: fleet.P99}
	if d.stock != "" {
		o.success = fleet.ByCall[0].Success
	}
	for reason, n := range fleet.Reasons {
		if reason != policy.ReasonSucceeded && n > fleet.Reasons[o.reason] {
			o.reason = reason
		}
	}
	return o
}

// Each remedy of docs/overload.md is played: the last cell of its row has what it changes, and the first the reason without it.
func TestOverloadPage_Remedies(t *testing.T) {
	t.Parallel()
	const elsewhere = "loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]\n"
	var (
		short = day{time: "lognormal: {median: 100ms, p99: 300ms}", retry: "perAttemptTimeout: 0.12s"}
		job   = day{rate: 5, lifetime: "600ms", length: "60s"}
		ofTwo = day{backends: 2, faults: "{service: orders, backends: [0], slow: {part: 1, by: 800ms}}", deadline: "1s"}
		crowd = day{ // 5 workers of each backend serve 1,000 calls a second
			workers: 10, rate: 450, clients: 4, load: 3, length: "10s", deadline: "1s", time: "exponential: 20ms",
			faults: "{service: orders, workers: 5}", retry: "perAttemptTimeout: 0.2s",
		}
		near = day{
			time: "lognormal: {median: 300ms, p99: 400ms}", deadline: "1s", faults: "{service: orders, backends: [0], down: true}",
			retry: "jitter: FULL", // no timeout
		}
		half  = day{rate: 20, length: "50s", faults: "{service: orders, backends: [0, 1], hang: true}"}
		stock = day{
			stock:  "perAttemptTimeout: 0.4s",
			faults: "{service: orders, method: " + checkStock + ", down: true}, {service: orders, backends: [0], hang: true}",
		}
	)
	for _, row := range []struct {
		remedy string // as its row begins
		day    day
		reason policy.Reason
		apply  func(*day)
	}{
		{
			"Raise `perAttemptTimeout` above nine of ten responses |", short, policy.ReasonNotProvenFast,
			func(d *day) { d.retry = "perAttemptTimeout: 0.2s" },
		},
		{
			"Set `onAttemptTimeout: RETRY`", job, policy.ReasonNotProvenFast,
			func(d *day) { d.retry = "perAttemptTimeout: 0.4s, onAttemptTimeout: RETRY" },
		},
		{"Send retries to the [other backend]", ofTwo, "", func(d *day) { d.file = elsewhere }},
		{"Add capacity", crowd, policy.ReasonSlowEverywhere, func(d *day) { d.faults = "{service: orders, workers: 10}" }},
		{"[Refuse calls](#shed-load-in-the-client)", crowd, policy.ReasonSlowEverywhere, func(d *day) { d.entry = "admission: REFUSE" }},
		{
			"Set `perAttemptTimeout` above the usual response", near, policy.ReasonSlowEverywhere,
			func(d *day) { d.retry = "perAttemptTimeout: 0.6s" },
		},
		{"Give the calls a longer deadline", near, policy.ReasonSlowEverywhere, func(d *day) { d.deadline = "2s" }},
		{"Send retries to [another backend]", half, policy.ReasonDeadlineExceeded, func(d *day) { d.file = elsewhere }},
		{"Give that method a budget of its own", stock, policy.ReasonBudgetExhausted, func(d *day) {
			d.file = "budgets: [{name: stock, bucket: {}}]\n"
			d.stock = "perAttemptTimeout: 0.4s, budget: stock"
		}},
	} {
		before := row.day.play(t)
		row.apply(&row.day)
		after := row.day.play(t)
		cell := fmt.Sprintf("%.1f → %.1f %%", 100*before.success, 100*after.success)
		if before.success == 1 {
			cell = fmt.Sprintf("p99 %.0f → %.0f ms", before.p99.Seconds()*1000, after.p99.Seconds()*1000)
		}
		if got := remedyCell(t, row.remedy); got != cell {
			t.Errorf("%s: docs/overload.md has %q; played, it is %q", row.remedy, got, cell)
		}
		if before.reason != row.reason {
			t.Errorf("%s: without it, most calls that fail have the reason %q; want %q", row.remedy, before.reason, row.reason)
		}
	}
}

// Budgets of other clients are recipes of docs/overload.md: each row of its table has a bucket, which is played.
func TestOverloadPage_OtherBudgets(t *testing.T) {
	t.Parallel()
	const aBudget = `\| (.+) \| ` + "`bucket: {(.+)}`" + ` \| ([0-9.]+) \| ([0-9.]+) \|`
	page := read(t, "docs/overload.md")
	_, table, found := strings.Cut(page, "| budget | as a policy has it |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile(aBudget).FindAllStringSubmatch(table, -1)
	if !found || len(rows) != 4 {
		t.Fatalf("the table has %d rows; want 4", len(rows))
	}
	for _, row := range rows {
		d := day{faults: "{service: orders, flaky: 0.3}", length: "60s", retry: "budget: orders"}
		d.file = "budgets: [{name: orders, bucket: {" + row[2] + "}}]\n"
		got := d.play(t)
		if want := fmt.Sprintf("%.1f, %.2f", 100*got.success, got.requests); row[3]+", "+row[4] != want {
			t.Errorf("%s: docs/overload.md has %s, %s; played, it is %s", row[1], row[3], row[4], want)
		}
	}
}

// remedyCell returns the last cell of a remedy's row.
func remedyCell(tb testing.TB, remedy string) string {
	tb.Helper()
	_, row, found := strings.Cut(read(tb, "docs/overload.md"), "| "+remedy)
	row, _, _ = strings.Cut(row, " |\n")
	if !found {
		tb.Errorf("docs/overload.md has no remedy %q", remedy)
	}
	return strings.TrimSpace(row[strings.LastIndex(row, "|")+1:])
}

// playTwoSpeeds plays a method half of whose calls ask for much and take 200 ms at the median, and the others 20 ms, over real gRPC to four
// backends, of which one hangs, or is stopped. It returns the part of the calls that succeed from then on.
func playTwoSpeeds(t *testing.T, usual, large string, stop bool) (success float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const calls = 1000
		draw := testkit.NewTimes(20*time.Millisecond, 0.4, 1)
		var hangs atomic.Bool
		var servers []*testserver.Server
		for i := range 4 {
			s := testserver.Start(t)
			s.On("*", testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
				took := draw.Draw()
				switch {
				case i == 0 && hangs.Load():
					return testserver.Hang()
				case a.Metadata.Get("size") != nil:
					took *= 10
				}
				return testserver.OK().Delay(took)
			}))
			servers = append(servers, s)
		}
		parse := func(timeout string) *policy.Set {
			d := day{retry: "perAttemptTimeout: " + timeout, entry: "timeout: 2s"}
			return testkit.Must(policy.Parse("retry.yaml", []byte(d.policy())))(t)
		}
		retrier := testkit.Must(interceptor.New(parse(usual)))(t)
		own := interceptor.Policy(parse(large).Lookup(getOrder))
		conn := testkit.Must(testserver.DialAll(servers, retrier.DialOptions()...))(t)
		defer conn.Close()
		var ok, all atomic.Int64
		var running sync.WaitGroup
		for i := range calls {
			counts := i >= calls/4
			if i == calls/4 && stop {
				servers[0].Down()
			}
			hangs.Store(counts)
			ctx, options := t.Context(), []grpc.CallOption(nil)
			if draw.Chance() < 0.5 {
				ctx, options = metadata.AppendToOutgoingContext(ctx, "size", "large"), append(options, own)
			}
			running.Go(func() {
				err := conn.Invoke(ctx, getOrder, &emptypb.Empty{}, &emptypb.Empty{}, options...)
				if counts {
					all.Add(1)
				}
				if counts && err == nil {
					ok.Add(1)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		running.Wait()
		success = float64(ok.Load()) / float64(all.Load())
	})
	return success
}

// A method with two speeds is refused attempts after slow ones, until the timeout is above both, or each has its own, or the backend that
// hangs is stopped.
func TestOverloadPage_TwoSpeeds(t *testing.T) {
	t.Parallel()
	testkit.Judge(t, func(one testing.TB) {
		before := playTwoSpeeds(t, "0.1s", "0.1s", false)
		checkRemedy(one, "[Find that backend and stop it]", before, playTwoSpeeds(t, "0.1s", "0.1s", true))
		checkRemedy(one, "Raise `perAttemptTimeout` above nine of ten responses of both", before, playTwoSpeeds(t, "0.6s", "0.6s", false))
		checkRemedy(one, "Give the slow calls a policy with a longer timeout", before, playTwoSpeeds(t, "0.1s", "0.6s", false))
	})
}

// checkRemedy compares the success without a remedy and with it to the page's, up to two points: goroutines take turns as they like.
func checkRemedy(tb testing.TB, remedy string, before, after float64) {
	tb.Helper()
	var shown, shownAfter float64
	cell := remedyCell(tb, remedy)
	_, err := fmt.Sscanf(cell, "%f → %f %%", &shown, &shownAfter)
	if err != nil || math.Abs(100*before-shown) > 2 || math.Abs(100*after-shownAfter) > 2 {
		tb.Errorf("%s: docs/overload.md has %q; played, it is %.0f → %.0f %%", remedy, cell, 100*before, 100*after)
	}
}

// playBursts plays 100 calls together every ten seconds, over real gRPC to four backends, of which one hangs. It returns the part of the
// calls that succeed.
func playBursts(t *testing.T, file string) (success float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const bursts, calls = 20, 100
		draw := testkit.NewTimes(20*time.Millisecond, 0.4, 1)
		var servers []*testserver.Server
		for range 4 {
			s := testserver.Start(t)
			s.On("*", testserver.Func(func(context.Context, testserver.Attempt) testserver.Step { return testserver.OK().Delay(draw.Draw()) }))
			servers = append(servers, s)
		}
		retrier := testkit.Must(interceptor.New(testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)))(t)
		conn := testkit.Must(testserver.DialAll(servers, retrier.DialOptions()...))(t)
		defer conn.Close()
		burst := func() (ok float64) {
			var succeeded atomic.Int64
			var running sync.WaitGroup
			for range calls {
				running.Go(func() {
					if conn.Invoke(t.Context(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}) == nil {
						succeeded.Add(1)
					}
				})
			}
			time.Sleep(10 * time.Second)
			running.Wait()
			return float64(succeeded.Load())
		}
		burst()
		servers[0].Reset()
		servers[0].On("*", testserver.Hang())
		for range bursts {
			success += burst() / (bursts * calls)
		}
	})
	return success
}

// Of calls that come together, many are slow at a time. Those that others overtake cost as little as retries.
func TestOverloadPage_Bursts(t *testing.T) {
	t.Parallel()
	testkit.Judge(t, func(one testing.TB) {
		if success := playBursts(t, day{entry: "timeout: 2s"}.policy()); success < 0.95 {
			one.Errorf("%.1f %% of the calls succeed; want 95", 100*success)
		}
	})
}
