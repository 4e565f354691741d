// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// What commits the application commits it to the oldest attempt that runs, and the others are cancelled.
func TestTheApplicationCommitsAHedgedStreamToTheOldestAttempt(t *testing.T) {
	for why, commit := range map[policy.Commit]func(t *testing.T, s scene, stream grpc.ClientStream){
		policy.CommitContext: func(t *testing.T, _ scene, stream grpc.ClientStream) {
			t.Helper()
			if stream.Context().Err() != nil {
				t.Error("the context has ended")
			}
		},
		policy.CommitPreparedMessage: func(t *testing.T, s scene, stream grpc.ClientStream) {
			t.Helper()
			if err := stream.SendMsg(s.prepared(t)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(string(why), func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, down().Delay(30*ms), down().Delay(time.Second), testserver.Hang())
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				time.Sleep(500 * ms) // the first has failed, the second and the third run
				commit(t, s, stream)
				start := time.Now()
				_, err := receive(stream)
				e, _ := errors.AsType[*interceptor.Error](err)
				if e == nil || e.Reason != policy.ReasonCommitted || e.Commit != why || s.Count(get) != 3 {
					t.Fatalf("%v, %+v", err, e)
				}
				if time.Since(start) != 530*ms || s.ends() != "[1  2 lost 3 cancelled]" {
					t.Errorf("after %v: %s", time.Since(start), s.ends())
				}
			})
		})
	}
}

func TestHeadersThatTheApplicationAsksForCommitAHedgedStream(t *testing.T) {
	brings := func(after time.Duration, name string) testserver.Step {
		return testserver.Play(testserver.Pause(after), testserver.SendHeader(metadata.Pairs("who", name)),
			testserver.Pause(time.Second), say(name))
	}
	for name, row := range map[string]struct {
		ask           time.Duration // when
		first, second testserver.Step
		want, sent    string
	}{
		"that are not there yet":    {0, testserver.Hang(), brings(50*ms, "2"), "[2]", "[0s 100ms]"},
		"that were there before":    {170 * ms, brings(160*ms, "1"), brings(10*ms, "2"), "[1]", "[0s 100ms]"},
		"of the only attempt":       {0, brings(50*ms, "1"), brings(0, "2"), "[1]", "[0s]"},
		"that only the second has":  {170 * ms, brings(200*ms, "1"), brings(10*ms, "2"), "[2]", "[0s 100ms]"},
		"after a failure":           {0, down().Delay(20 * ms), brings(50*ms, "2"), "[2]", "[0s 20ms]"},
		"and the first comes first": {0, brings(120*ms, "1"), brings(50*ms, "2"), "[1]", "[0s 100ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, hedged(func(h *policy.HedgeSpec) { h.MaxAttempts = 2 }), func(t *testing.T, s scene) {
				s.On(get, row.first, row.second)
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				time.Sleep(row.ask)
				md, err := stream.Header()
				if fmt.Sprint(md["who"]) != row.want || err != nil {
					t.Fatalf("headers %v, %v", md, err)
				}
				time.Sleep(100 * ms) // no other attempt is sent
				got, err := receive(stream)
				if fmt.Sprint(got) != row.want || err != io.EOF || s.sent() != row.sent {
					t.Errorf("%v, %v, sent %s", got, err, s.sent())
				}
			})
		})
	}
}

func TestHeaderOfAHedgedStreamThatFailsIsNil(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		if md, err := stream.Header(); md != nil || err != nil || s.Count(get) != 3 {
			t.Errorf("%v, %v after %d attempts", md, err, s.Count(get))
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v", err)
		}
	})
}

func TestACallThatIsCommittedAsItIsCancelledEndsOnce(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		for n := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			stream := s.open(t, ctx, bidiStream)
			send(t, stream, "x")
			time.Sleep(250 * ms) // there are three attempts
			done := make(chan bool)
			go func() { cancel(); close(done) }()
			stream.Context() // and no other call
			<-done
			synctest.Wait()
			if len(s.calls) != n+1 || s.retrier.Replayed() != 0 {
				t.Fatalf("%d calls of %d have ended, %d bytes kept", len(s.calls), n+1, s.retrier.Replayed())
			}
		}
	})
}
