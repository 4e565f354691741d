// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// story is one call through stagger, told attempt by attempt.
type story struct {
	title  string
	method string
	script []testserver.Step
	spent  bool // the budget is
}

func stories() []story {
	return []story{
		{
			title:  "GetOrder: the server is down, then full (\"come back in 300 ms\"), then hangs, then answers",
			method: orders.GetOrder,
			script: []testserver.Step{
				ill().Times(1),
				testserver.Fail(codes.ResourceExhausted, "too many orders").RetryInfo(300 * time.Millisecond).Times(1),
				testserver.Hang().Times(1),
				testserver.OK(),
			},
		},
		{title: "CreateOrder, which nobody has declared safe: the server is down", method: orders.CreateOrder, script: []testserver.Step{ill()}},
		{title: "GetOrder in a long outage: the budget is spent", method: orders.GetOrder, script: []testserver.Step{ill()}, spent: true},
	}
}

// tell makes the calls of the stories and shows what happened.
func tell(ctx context.Context, set *policy.Set, out screen) error {
	out.printf("\nSingle calls through stagger, attempt by attempt\n")
	for _, s := range stories() {
		notes, err := s.play(ctx, set)
		if err != nil {
			return err
		}
		printStory(out, s.title, notes)
	}
	return nil
}

// play makes the call, to a server of its own, and returns what the Retrier told of it.
func (s story) play(ctx context.Context, set *policy.Set) (*notebook, error) {
	var notes notebook
	options := []interceptor.Option{interceptor.WithObserver(notes.observer())}
	if s.spent {
		options = append(options, interceptor.WithBudget(set.Lookup(s.method).Budget(), budget.Empty))
	}
	retrier, err := interceptor.New(set, options...) //nolint:contextcheck // its warnings belong to no call
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
	defer conn.Close() //nolint:errcheck // nothing is lost
	server.On(s.method, s.script...)
	if err := connect(ctx, conn); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storyTimeout)
	defer cancel()
	_ = conn.Invoke(ctx, s.method, &emptypb.Empty{}, &emptypb.Empty{}) // the notes say how it ended
	return &notes, nil
}

// storyTimeout is that of the policy file: longer than that of the day's calls, to show all.
const storyTimeout = 2 * time.Second

// connect makes the connection, so that the story does not begin with it. No script stands for the
// method.
func connect(ctx context.Context, conn *grpc.ClientConn) error {
	return conn.Invoke(ctx, "/demo.Demo/Connect", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true), interceptor.Disable())
}
