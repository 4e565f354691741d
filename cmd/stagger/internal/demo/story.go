// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// story is one call through stagger, shown attempt by attempt.
type story struct {
	title  string
	method string
	script []testserver.Step
	spent  bool // the budget is spent
}

// down returns the step of a server that fails at once.
func down() testserver.Step { return testserver.Fail(codes.Unavailable, "the backend is down") }

func stories() []story {
	return []story{
		{
			title:  "GetOrder: the server is down, then full (\"come back in 300 ms\"), then hangs, then answers",
			method: orders.GetOrder,
			script: []testserver.Step{
				down().Times(1),
				testserver.Fail(codes.ResourceExhausted, "too many orders").RetryInfo(300 * time.Millisecond).Times(1),
				testserver.Hang().Times(1),
				testserver.OK(),
			},
		},
		{title: "CreateOrder, which isn't declared idempotent: the server is down", method: orders.CreateOrder, script: []testserver.Step{down()}},
		{title: "GetOrder in a long outage: the budget is spent", method: orders.GetOrder, script: []testserver.Step{down()}, spent: true},
	}
}

// showStories makes the calls of the stories and shows their attempts.
func showStories(ctx context.Context, set *policy.Set, out io.Writer) error {
	printf(out, "\nSingle calls through stagger, attempt by attempt\n")
	for _, s := range stories() {
		t, err := s.play(ctx, set)
		if err != nil {
			return err
		}
		printStory(out, s.title, t)
	}
	return nil
}

// spent is a budget that grants no extra attempt.
type spent struct{ budget.Budget }

// Withdraw implements [budget.Budget].
func (spent) Withdraw(time.Time, budget.Charge) (budget.Permit, bool) {
	return budget.Permit{}, false
}

// play makes the call, to a server of its own, and returns the Retrier's events.
func (s story) play(ctx context.Context, set *policy.Set) (*trace, error) {
	var t trace
	options := []interceptor.Option{interceptor.WithObserver(t.observer())}
	if s.spent {
		options = append(options, interceptor.WithBudget(decision.New(set.Lookup(s.method).Spec()).Budget(), spent{budget.Unlimited}))
	}
	retrier, err := interceptor.New(set, options...)
	if err != nil {
		return nil, err
	}
	server, err := testserver.New()
	if err != nil {
		return nil, err
	}
	defer server.Close()
	conn, err := grpc.NewClient(server.Target(), append(server.DialOptions(), retrier.DialOptions()...)...)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	server.On(s.method, s.script...)
	if err := connect(ctx, conn); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storyTimeout)
	defer cancel()
	_ = conn.Invoke(ctx, s.method, &emptypb.Empty{}, &emptypb.Empty{}) // the trace has the result
	return &t, nil
}

// storyTimeout is the policy file's timeout. The day's calls have a shorter one.
const storyTimeout = 2 * time.Second

// connect connects first, so that the story does not begin with it. The method has no script.
func connect(ctx context.Context, conn *grpc.ClientConn) error {
	return conn.Invoke(ctx, "/demo.Demo/Connect", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true), interceptor.Disable())
}

// traceLine is one line of a trace.
type traceLine struct {
	at      time.Time
	attempt int
	outcome string
	then    string
	reason  string
}

// trace has the Retrier's events for one call.
type trace struct {
	begin time.Time // of the call
	lines []traceLine
}

// observer needs no lock: the Retrier reports a call's events one at a time.
func (t *trace) observer() interceptor.Observer {
	return interceptor.Observer{
		Attempt:    t.attempt,
		Decision:   t.decision,
		Call:       t.call,
		Diagnostic: func(policy.Diagnostic) {},
	}
}

func (t *trace) attempt(_ context.Context, e interceptor.Event) {
	l := traceLine{at: time.Now(), attempt: e.Attempt, outcome: codename.Of(e.Code)}
	if e.Place == "abandoned" || e.Place == "cancelled" {
		l.outcome = "given up"
	}
	t.lines = append(t.lines, l)
}

// decision completes the line of its attempt, unless the attempt is still running.
func (t *trace) decision(_ context.Context, e interceptor.Event) {
	if e.Code == codes.DeadlineExceeded && e.Err == nil {
		t.lines = append(t.lines, traceLine{at: time.Now(), attempt: e.Attempt, outcome: "slow"})
	}
	l := &t.lines[len(t.lines)-1]
	l.then, l.reason = "no other attempt", string(e.Reason)
	if e.Retry {
		l.then = fmt.Sprintf("again in %d ms", e.Delay.Milliseconds())
		l.reason = "backoff"
		if source := e.Pushback; source != "" {
			l.reason = "the server's answer: " + source
		}
	}
}

func (t *trace) call(_ context.Context, e interceptor.Event) {
	t.lines = append(t.lines, traceLine{
		at: time.Now(), outcome: "call ends: " + codename.Of(e.Code),
		then: fmt.Sprintf("attempts: %d", e.Attempt), reason: string(e.Reason),
	})
	t.begin = time.Now().Add(-e.Elapsed)
}

func printStory(out io.Writer, title string, t *trace) {
	table := report.Table{Title: title, Columns: []string{"ms", "attempt", "outcome", "then", "reason"}}
	for _, l := range t.lines {
		attempt := ""
		if l.attempt > 0 {
			attempt = strconv.Itoa(l.attempt)
		}
		ms := strconv.FormatInt(l.at.Sub(t.begin).Milliseconds(), 10)
		table.Rows = append(table.Rows, []string{ms, attempt, l.outcome, l.then, l.reason})
	}
	printf(out, "\n%s\n", terminal.Table(table, terminal.StyleOf(out), ""))
}
