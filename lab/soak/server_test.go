// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

// callHeader identifies the call of an attempt.
const callHeader = "x-call"

// messages is the number of messages of a stream in each direction.
const messages = 3

// startServer starts a server on loopback, whose attempts end at random.
func (w *world) startServer() (*testserver.Server, error) {
	age := keepalive.ServerParameters{MaxConnectionAge: 2 * time.Second, MaxConnectionAgeGrace: time.Second} // GOAWAY now and then
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s, err := testserver.New(testserver.Listener(lis), testserver.Keep(0), testserver.ServerOptions(grpc.KeepaliveParams(age)))
	if err != nil {
		return nil, err
	}
	for method, answer := range map[string]func(name string) testserver.Step{
		get:    func(name string) testserver.Step { return testserver.OK(wrapperspb.String(name)) },
		create: func(name string) testserver.Step { return testserver.OK(wrapperspb.String(name)) },
		load: func(name string) testserver.Step {
			return moves.Play(moves.Receive(0), moves.Send(wrapperspb.String(name)))
		},
		chat:  func(string) testserver.Step { return moves.Play(moves.Echo(0)) },
		watch: watched,
	} {
		s.On(method, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step { return w.ends(a, answer) }))
	}
	return s, nil
}

// watched sends all messages of a server stream, each with its attempt's name and its index.
func watched(name string) testserver.Step {
	list := make([]moves.Move, messages)
	for i := range list {
		list[i] = moves.Send(wrapperspb.String(fmt.Sprintf("%s/%d", name, i)))
	}
	return moves.Play(list...)
}

// ends returns how an attempt ends: all its parts have its name.
func (w *world) ends(a testserver.Attempt, answer func(name string) testserver.Step) testserver.Step {
	id, number := identity(a)
	w.running.attempt(id)
	name := fmt.Sprintf("%s/%d", id, number)
	var step testserver.Step
	switch n := w.float(); {
	case n < 0.60:
		step = answer(name)
	case n < 0.80:
		step = testserver.Fail([]codes.Code{codes.Unavailable, codes.Unavailable, codes.Aborted, codes.NotFound}[int(n*1000)%4], name)
	case n < 0.84:
		step = answer(name).Then(testserver.Fail(codes.Unavailable, name))
	case n < 0.88:
		return testserver.Hang()
	case n < 0.89:
		return testserver.Drop()
	case n < 0.95:
		step = testserver.Fail(codes.Unavailable, name).Pushback(strconv.Itoa(int(n*1000) % 50))
	case n < 0.97:
		step = testserver.Fail(codes.Unavailable, name).RetryInfo(w.upTo(50 * time.Millisecond))
	default:
		step = testserver.Fail(codes.Unavailable, name).Pushback("-1")
	}
	if w.of(0.5) {
		step = step.Header(metadata.Pairs("by", name))
	}
	step = step.Trailer(metadata.Pairs("by", name))
	if w.of(0.3) {
		step = step.Delay(w.upTo(100 * time.Millisecond))
	}
	return step
}

// identity returns the call of an attempt, and its number.
func identity(a testserver.Attempt) (id string, number int) {
	if v := a.Metadata.Get(callHeader); len(v) == 1 {
		id = v[0]
	}
	if v := a.Metadata.Get("grpc-previous-rpc-attempts"); len(v) == 1 {
		number, _ = strconv.Atoi(v[0]) // gRPC writes a number
	}
	return id, number + 1
}
