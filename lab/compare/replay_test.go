// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestReplay is why those streams hold on to what they have sent.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, what := range payloads() {
		for i, k := range replayers(1) {
			synctest.Test(t, func(t *testing.T) {
				s, received := failing(what)
				defer s.Stop()
				made, err := k.prepare(plan{backoff: atOnce, replay: k.limit})
				if err != nil {
					t.Fatal(err)
				}
				conn, err := s.dial(made.options)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				stream, err := opened(t.Context(), conn, what)
				if err != nil {
					t.Fatal(err)
				}
				attempts := int64(2)
				if i == 0 {
					attempts = 1 // without retries
				}
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); (err == nil) != (attempts == 2) {
					t.Errorf("%s, %s: %v", what.name, k.name, err)
				}
				if got := len(received); int64(got) != attempts || s.attempts.Load() != attempts {
					t.Errorf("%s, %s: all was received %d times in %d attempts; want %d", what.name, k.name, got, s.attempts.Load(), attempts)
				}
				_ = stream.CloseSend()
			})
		}
	}
}

// failing is a server that fails the first attempt of a stream when it has received everything.
func failing(what payload) (s *server, received chan int) {
	received = make(chan int, 9)
	s = serve(succeed, func(stream grpc.ServerStream) error {
		if err := receive(stream, what.messages-1); err != nil {
			return err
		}
		received <- what.messages
		if s.attempts.Load() == 1 {
			return errUnavailable
		}
		return send(stream, 1)
	})
	return s, received
}

func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, err := waiting(20)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := clients(calls.held)[1:], names(waitingClients()); !slices.Equal(got, want) {
			t.Errorf("waiting: %v; want %v", got, want)
		}
		for _, h := range calls.held {
			if h.Goroutines < 1 || h.Count != 20 {
				t.Errorf("%+v; want a goroutine for each of 20 calls", h)
			}
		}
		for _, what := range payloads() {
			streams, err := replaying(4, what)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(streams.held); got != len(replayers(4)) {
				t.Errorf("%s: %d clients; want %d", what.name, got, len(replayers(4)))
			}
			for _, h := range streams.held {
				if h.Bytes < float64(what.messages*what.size) {
					t.Errorf("%s, %s: %.0f bytes; want what was sent at least", what.name, h.Client, h.Bytes)
				}
			}
		}
	})
}

func clients(held []holding) (all []string) {
	for _, h := range held {
		all = append(all, h.Client)
	}
	return all
}

func names(list []client) (all []string) {
	for _, k := range list {
		all = append(all, k.name)
	}
	return all
}
