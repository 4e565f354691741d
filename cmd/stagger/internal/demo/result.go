// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/policy"
)

// client is a client with its kind of retries.
type client struct {
	name    string
	what    string // short description
	options []grpc.DialOption
}

// Settings that the retrying clients share.
const (
	attempts       = 4
	attemptTimeout = 200 * time.Millisecond
)

const stagger = "stagger"

// newClients returns the four clients of the demo; the last one follows the policies.
func newClients(set *policy.Set, observer interceptor.Observer) ([]client, error) {
	retrier, err := interceptor.New(set, interceptor.WithObserver(observer))
	if err != nil {
		return nil, err
	}
	return []client{
		{"no retries", "one attempt a call", []grpc.DialOption{grpc.WithDisableRetry()}},
		{"retry loop", "4 attempts of 200 ms, one right after the other", loop{}.options()},
		{"exponential", "4 attempts of 200 ms, after 100, 200 and 400 ms, no jitter, no budget", loop{initial: 100 * time.Millisecond}.options()},
		{stagger, "retry.yaml: jitter, a budget, a slow attempt goes on in parallel with the next one", retrier.DialOptions()},
	}, nil
}

// played returns the client as it is played.
func (c client) played() outage.Client {
	return outage.Client{Name: c.name, Options: func() (outage.Options, error) { return outage.Options{Dial: c.options}, nil }}
}

// loop is a typical retry loop: every attempt has its own timeout, every error is retried, and nothing limits the total.
type loop struct {
	initial time.Duration // wait before the first retry; it
}

func (l loop) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(l.unary)}
}

func (l loop) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	wait := l.initial
	for n := 1; ; n++ {
		err := within(ctx, attemptTimeout, func(ctx context.Context) error {
			return invoke(ctx, method, req, reply, cc, opts...)
		})
		if n == attempts || !retryable(err) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		wait *= 2
	}
}

func within(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx)
}

func retryable(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded:
		return true
	default:
		return false
	}
}

// result has a client's figures for the tables.
type result struct {
	outage.Result

	name      string
	phases    map[string]float64 // success of the calls begun in a phase, by its label
	perOutage float64            // requests for each call in the total outage
	twice     int                // orders that the servers carried out more than once
}

func newResult(d day, name string, r *outage.Record) result {
	out := result{Result: r.Measure(), name: name, phases: map[string]float64{}, twice: twice(r.Requests[0])}
	for _, label := range d.labels() {
		part := r.Part(d.span(label))
		out.phases[label] = part.Success()
		if label == "outage" {
			out.perOutage = part.PerCall()
		}
	}
	return out
}

// twice counts the orders that the servers carried out more than once.
func twice(requests []outage.Request) int {
	n, made := 0, map[string]int{}
	for i := range requests {
		r := &requests[i]
		if r.Method != orders.CreateOrder || !carriedOut(r) {
			continue
		}
		order := string(bytes.Join(r.Requests, nil))
		made[order]++
		if made[order] == 2 {
			n++
		}
	}
	return n
}

// carriedOut reports whether the server did the work of a request. An abandoned request keeps its place in the queue and is
// served. A request without a message has no work.
func carriedOut(r *outage.Request) bool {
	return r.Received > 0 && (r.Code == codes.OK || r.Cancelled)
}

// reasons counts why failed calls got no other attempt. The zero value is ready.
type reasons struct {
	mu    sync.Mutex
	count map[policy.Reason]int // guarded by mu
}

func (r *reasons) observer() interceptor.Observer {
	return interceptor.Observer{
		Call: func(_ context.Context, e interceptor.Event) {
			if e.Err != nil {
				r.add(e.Reason)
			}
		},
		// "stagger lint" shows the policy's warnings; here they would clutter the screen.
		Diagnostic: func(policy.Diagnostic) {},
	}
}

func (r *reasons) add(reason policy.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[policy.Reason]int{}
	}
	r.count[reason]++
}

// String returns the reasons, one a line, the most frequent first.
func (r *reasons) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines strings.Builder
	for _, reason := range report.MostFrequent(r.count) {
		fmt.Fprintf(&lines, "  %5d  %s\n", r.count[reason], reason)
	}
	return lines.String()
}
