// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo shows the effect of retries on a service in trouble: real clients and servers in one process, a scripted day,
// and measurements.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
)

// Command returns "stagger demo".
func Command() *cobra.Command {
	var (
		file string
		seed uint64
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a bad day against four clients: no retries, two usual kinds of retries, stagger",
		Long: `Play a bad day against four clients: no retries, two usual kinds of retries, stagger.

The clients make the same calls at the same times, each to its own four backends, all in
this process. It takes about 20 seconds. Then it prints the measurements, and how stagger
decided about single calls.`,
		Example: `  stagger demo
  stagger demo --seed 7                the calls come at other times
  stagger demo --policy my/retry.yaml  stagger follows your policies for acme.orders.v1.OrderService
  stagger demo | tee demo.txt          plain text`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := policy.Parse(orders.File, orders.Policy)
			if file != "" {
				set, err = policy.Load(file)
			}
			if err != nil {
				return err
			}
			day, err := sim.Parse("day.yaml", dayFile, nil)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if _, err := showDay(cmd.Context(), day, set, seed, out); err != nil {
				return err
			}
			return showStories(cmd.Context(), set, out)
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "`file` with the policies that stagger follows (default: examples/orders/retry.yaml, built in)")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that seeds the times of the calls")
	return cmd
}

//go:embed day.yaml
var dayFile []byte

// printf prints; a closed output is not an error.
func printf(out io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(out, format, values...) }

// client is a client with its kind of retries.
type client struct {
	name, what string
	options    []grpc.DialOption
}

const (
	stagger        = "stagger"
	attempts       = 4
	attemptTimeout = 200 * time.Millisecond
	orderShare     = 0.02 // part of the calls that create an order, which is not idempotent
)

// showDay plays the day and shows the measurements.
func showDay(ctx context.Context, day *sim.Scenario, set *policy.Set, seed uint64, out io.Writer) ([]result, error) {
	why := reasons{count: map[policy.Reason]int{}}
	retrier, err := interceptor.New(set, interceptor.WithObserver(why.observer()))
	if err != nil {
		return nil, err
	}
	clients := []client{
		{"no retries", "one attempt a call", []grpc.DialOption{grpc.WithDisableRetry()}},
		{"retry loop", "4 attempts of 200 ms, one right after the other", loop(0)},
		{"exponential", "4 attempts of 200 ms, after 100, 200 and 400 ms, no jitter, no budget", loop(100 * time.Millisecond)},
		{stagger, "retry.yaml: jitter, a budget, a slow attempt goes on in parallel with the next one", retrier.DialOptions()},
	}
	calls, random := outage.Arrivals(day, seed), rand.New(rand.NewPCG(seed, 1))
	for i := range calls {
		if random.Float64() < orderShare {
			calls[i].Method = orders.CreateOrder
		}
	}
	s := &day.Services[0]
	printf(out, "Four clients make the same %d calls in %g s (seed %d), each to %d backends of its own that\n"+
		"serve %.0f requests/s together. Normal load is %.0f %% of that. A call ends after %v at the latest.\n"+
		"%.0f %% of the calls create an order, the others read one.\n\n",
		len(calls), day.Length().Seconds(), seed, s.Backends, s.Capacity(), 100*day.Phases[0].Load, day.Fleets[0].Calls[0].Deadline, 100*orderShare)
	var ended atomic.Int64
	bar := terminal.NewProgress(out, "the day")
	o := outage.Outage{Scenario: day, Calls: calls, OnEnd: func(int) { bar.Set(float64(ended.Add(1)) / float64(len(clients)*len(calls))) }}
	for _, c := range clients {
		printf(out, "  %-12s %s\n", c.name, c.what)
		o.Clients = append(o.Clients, outage.Client{Name: c.name, Options: func() (outage.Options, error) { return outage.Options{Dial: c.options}, nil }})
	}
	printf(out, "\n")
	records, err := o.Play(ctx)
	bar.Clear()
	if err != nil {
		return nil, err
	}
	results := make([]result, len(clients))
	for i, c := range clients {
		results[i] = newResult(c.name, &records[i])
	}
	style := terminal.StyleOf(out)
	printResults(out, style, results)
	printf(out, "\nRequests/s at the servers over the %g s; dotted: their capacity; cut off at %.0f\n", day.Length().Seconds(), terminal.ChartCut*s.Capacity())
	for i, c := range clients {
		printf(out, "%s\n%s\n", c.name, terminal.Chart(records[i].PerSecond(), s.Capacity(), 0, style, i))
	}
	printf(out, "\nWhy calls of stagger that failed got no other attempt:\n")
	for _, reason := range report.MostFrequent(why.count) {
		printf(out, "  %5d  %s\n", why.count[reason], reason)
	}
	warnLate(out, results)
	return results, nil
}

// warnLate prints a warning if the machine could not keep up.
func warnLate(out io.Writer, results []result) {
	if slices.ContainsFunc(results, func(r result) bool { return r.Late > outage.TooLate }) {
		printf(out, "\nThis machine could not keep up: 1 %% of the calls began %v or more after their time.\n"+
			"The numbers above partly measure the machine; close other programs and try again.\n", outage.TooLate)
	}
}

// loop returns a client with a typical retry loop: every attempt has its own timeout, every error of these is retried after a wait that
// doubles, and nothing limits the total.
func loop(initial time.Duration) []grpc.DialOption {
	retry := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		wait := initial
		for n := 1; ; n++ {
			attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
			err := invoke(attempt, method, req, reply, cc, opts...)
			cancel()
			retryable := slices.Contains([]codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded}, status.Code(err))
			if n == attempts || !retryable || ctx.Err() != nil {
				return err
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return err
			}
			wait *= 2
		}
	}
	return []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(retry)}
}

// result has a client's figures for the tables.
type result struct {
	outage.Result

	name      string
	phases    map[string]float64 // success of the calls begun in a phase, by its label
	perOutage float64            // requests for each call in the total outage
	twice     int                // orders that the servers carried out more than once
}

func newResult(name string, r *outage.Record) result {
	out := result{Result: r.Measure(), name: name, phases: map[string]float64{}, twice: twice(r.Requests[0])}
	var from time.Duration
	for _, p := range r.Scenario.Phases {
		part := r.Part(from, from+p.Length)
		label, _, _ := strings.Cut(p.Name, ":")
		if out.phases[label] = part.Success(); label == "outage" {
			out.perOutage = part.PerCall()
		}
		from += p.Length
	}
	return out
}

// twice counts the orders that the servers carried out more than once. A request without a message has no work. An abandoned one keeps
// its place in the queue and is served.
func twice(requests []outage.Request) int {
	n, made := 0, map[string]int{}
	for i := range requests {
		r := &requests[i]
		if r.Method != orders.CreateOrder || r.Received == 0 || r.Code != codes.OK && !r.Cancelled {
			continue
		}
		order := string(bytes.Join(r.Requests, nil))
		if made[order]++; made[order] == 2 {
			n++
		}
	}
	return n
}

// printResults shows what distinguishes the clients in each trouble, then all numbers.
func printResults(out io.Writer, style terminal.Style, results []result) {
	troubles := report.Table{Title: "Four troubles, four clients", Columns: []string{
		"client", "blip:\nsuccess %", "one of four fails:\nsuccess %", "outage: requests\nfor each call",
		"pulse: back to\nnormal after, s", "orders made\ntwice",
	}}
	whole := report.Table{Title: "The whole day", Columns: append([]string{"client"}, outage.Columns...)}
	percent := func(part float64) string { return fmt.Sprintf("%.1f", 100*part) }
	for _, r := range results {
		troubles.Rows = append(troubles.Rows, []string{
			r.name, percent(r.phases["blip"]), percent(r.phases["one of four"]), fmt.Sprintf("%.2f", r.perOutage), r.Recovery.String(), strconv.Itoa(r.twice),
		})
		whole.Rows = append(whole.Rows, r.Row(r.name))
	}
	printf(out, "%s\n%s\n\n%s\n%s\n", terminal.Table(troubles, style, stagger), troublesNote, terminal.Table(whole, style, stagger), wholeNote)
}

const troublesNote = `requests: arrivals at the servers. pulse: 1.5 times the capacity, until 99 % of the calls of
250 ms succeed again. made twice: CreateOrder was retried although the servers carried out, or still
carry out, the first request; stagger doesn't retry it, since it isn't declared idempotent.`

const wholeNote = `peak: in 200 ms. p50, p99, p999: of all calls, failed ones included.`

// reasons count why failed calls got no other attempt.
type reasons struct {
	mu    sync.Mutex
	count map[policy.Reason]int // guarded by mu while calls are made
}

func (r *reasons) observer() interceptor.Observer {
	return interceptor.Observer{
		Call: func(_ context.Context, e interceptor.Event) {
			if e.Err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.count[e.Reason]++
			}
		},
		// "stagger lint" shows the policy's warnings; here they would clutter the screen.
		Diagnostic: func(policy.Diagnostic) {},
	}
}
