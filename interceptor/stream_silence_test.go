// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// silent is the policy of plain with a messageTimeout of 30 s.
func silent(change ...func(*spec.Retry)) spec.Config {
	retry := plain()
	retry.MessageTimeout = 30 * time.Second
	for _, f := range change {
		f(&retry)
	}
	return config(retry)
}

// hush is an attempt that sends messages, and nothing more.
func hush(texts ...string) testserver.Step {
	moves := []faults.Move{faults.Receive(1)}
	if len(texts) > 0 {
		moves = append(moves, say(texts...))
	}
	return faults.Play(append(moves, faults.Pause(10*time.Hour))...)
}

// wantSilent checks that a stream has ended with the error of a silent server.
func wantSilent(t *testing.T, err error, reason policy.Reason) {
	t.Helper()
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no message for 30s") || reasonOf(err) != reason {
		t.Errorf("%v (%s); want UNAVAILABLE, no message for 30s (%s)", err, reasonOf(err), reason)
	}
}

// A stream whose server falls silent resumes, and is retried before its first message.
func TestMessageTimeout(t *testing.T) {
	header := faults.Play(faults.Receive(1), faults.SendHeader(nil), faults.Pause(10*time.Hour))
	for name, row := range map[string]struct {
		script []testserver.Step
		opts   []grpc.CallOption
		look   func(grpc.ClientStream)
		got    string
		waits  string        // between attempts
		reason policy.Reason // "": io.EOF
	}{
		"resumed":                       {[]testserver.Step{hush("1", "2"), feed(1, 0)}, []grpc.CallOption{interceptor.Resume(after)}, nil, "[1 2 0]", "[30.1s]", ""},
		"resumed, headers seen":         {[]testserver.Step{header, feed(1, 0)}, []grpc.CallOption{interceptor.Resume(after)}, askHeader, "[0]", "[30.1s]", ""},
		"before the first message":      {[]testserver.Step{hush(), feed(1, 0)}, nil, nil, "[0]", "[30.1s]", ""},
		"before headers":                {[]testserver.Step{hush(), feed(1, 0)}, nil, askHeader, "[0]", "[30.1s]", ""},
		"headers, then nothing":         {[]testserver.Step{header, feed(1, 0)}, nil, askHeader, "[]", "[]", policy.ReasonCommitted},
		"after the first message":       {[]testserver.Step{hush("1"), feed(1, 0)}, nil, nil, "[1]", "[]", policy.ReasonCommitted},
		"always, before a message":      {[]testserver.Step{hush()}, nil, nil, "[]", "[30.1s 30.2s 30.4s]", policy.ReasonAttemptsExhausted},
		"always, without progress":      {[]testserver.Step{hush("1").Times(1), hush()}, []grpc.CallOption{interceptor.Resume(after)}, nil, "[1]", "[30.1s 30.2s 30.4s]", policy.ReasonAttemptsExhausted},
		"one attempt":                   {[]testserver.Step{hush()}, []grpc.CallOption{interceptor.MaxAttempts(1)}, nil, "[]", "[]", policy.ReasonAttemptsExhausted},
		"one attempt, before headers":   {[]testserver.Step{hush()}, []grpc.CallOption{interceptor.MaxAttempts(1)}, askHeader, "[]", "[]", policy.ReasonAttemptsExhausted},
		"one attempt, after a message":  {[]testserver.Step{hush("1")}, []grpc.CallOption{interceptor.MaxAttempts(1)}, nil, "[1]", "[]", policy.ReasonAttemptsExhausted},
		"messages that are 29 s apart":  {[]testserver.Step{faults.Play(faults.Receive(1), faults.Pause(29*time.Second), say("1"), faults.Pause(29*time.Second), say("2"))}, nil, nil, "[1 2]", "[]", ""},
		"silent attempts with messages": {[]testserver.Step{hush("1").Times(6), feed(1, 0)}, []grpc.CallOption{interceptor.Resume(after)}, nil, "[1 1 1 1 1 1 0]", "[30.1s 30.2s 30.4s 30.8s 31.6s 33.2s]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, silent(), func(t *testing.T, s scene) {
				s.On(get, row.script...)
				stream := s.open(t, t.Context(), serverStream, row.opts...)
				send(t, stream, "from the start")
				_ = stream.CloseSend()
				if row.look != nil {
					row.look(stream)
				}
				got, err := receive(stream)
				if row.reason == "" && err != io.EOF || fmt.Sprint(got) != row.got {
					t.Errorf("%v, %v (%s); want %s", got, err, reasonOf(err), row.got)
				}
				if row.reason != "" {
					wantSilent(t, err, row.reason)
				}
				if waits := s.waits(); waits != row.waits {
					t.Errorf("waits %s; want %s", waits, row.waits)
				}
			})
		})
	}
}

func askHeader(s grpc.ClientStream) { _, _ = s.Header() }

// Only RecvMsg and Header wait, and only once the request is whole.
func TestMessageTimeout_NobodyWaits(t *testing.T) {
	play(t, silent(), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), say("1", "2")))
		stream := s.open(t, t.Context(), serverStream)
		time.Sleep(time.Hour)
		send(t, stream, "from the start")
		time.Sleep(time.Hour)
		testkit.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		time.Sleep(time.Hour)
		if got, err := receive(stream); fmt.Sprint(got) != "[2]" || err != io.EOF || s.Count(get) != 1 {
			t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

// Other kinds of streams have no messageTimeout, and neither has a call in another mode, or whose mode changes while it waits.
func TestMessageTimeout_NotApplied(t *testing.T) {
	for name, row := range map[string]struct {
		desc   *grpc.StreamDesc
		change func(*testing.T, scene)
	}{
		"client stream": {desc: clientStream},
		"bidi":          {desc: bidiStream},
		"one each way":  {desc: &grpc.StreamDesc{}},
		"OFF":           {serverStream, func(t *testing.T, s scene) { s.setMode(t, policy.ModeOff) }},
		"OBSERVE":       {serverStream, func(t *testing.T, s scene) { s.setMode(t, policy.ModeObserve) }},
		"OFF later":     {serverStream, func(t *testing.T, s scene) { s.setModeAfter(t, time.Second, policy.ModeOff) }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, silent(), func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Receive(1), faults.Pause(time.Hour), say("1")))
				if row.change != nil {
					row.change(t, s)
				}
				if got, took, err := s.whole(t, row.desc); got != "[1]" || took != time.Hour || s.Count(get) != 1 {
					t.Errorf("%s, %v after %v and %d attempts", got, err, took, s.Count(get))
				}
			})
		})
	}
}

// It also applies while attempts may run in parallel: those that are silent end one by one.
func TestMessageTimeout_Race(t *testing.T) {
	for _, look := range []func(grpc.ClientStream){func(grpc.ClientStream) {}, askHeader} {
		play := func(t *testing.T) {
			play(t, silent(func(r *spec.Retry) { r.PerAttemptTimeout, r.MaxAttempts = 10*time.Second, 2 }), func(t *testing.T, s scene) {
				s.connect()
				s.On(get, hush())
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "from the start")
				look(stream)
				_, err := receive(stream)
				wantSilent(t, err, policy.ReasonAttemptsExhausted)
				if s.waits() != "[10.1s]" {
					t.Errorf("waits %s; want the second attempt beside the first", s.waits())
				}
			})
		}
		t.Run("", play)
	}
}

// A method that isn't idempotent is not retried.
func TestMessageTimeout_NotIdempotent(t *testing.T) {
	play(t, silent(), func(t *testing.T, s scene) {
		s.On(create, hush())
		stream := testkit.Must(s.conn.NewStream(t.Context(), serverStream, create))(t)
		send(t, stream, "from the start")
		_, err := receive(stream)
		wantSilent(t, err, policy.ReasonNotIdempotent)
	})
}

// The end of a silent attempt is the server's failure, for whatever counts failures.
func TestMessageTimeout_Failure(t *testing.T) {
	gate := new(ear)
	c := silent(func(r *spec.Retry) { r.Budget = "" })
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, hush("1").Times(20), feed(1, 0))
		_, err := s.watch(t.Context(), t)
		wantSilent(t, err, policy.ReasonBudgetExhausted)
		const attempts = 1 + 4 + 2 // the bucket holds 4, and 2 come back in 200 s
		if s.Count(get) != attempts || strings.Count(gate.String(), "the server's Unavailable") != attempts {
			t.Errorf("%d attempts, of which the breaker heard %s; want %d", s.Count(get), gate, attempts)
		}
		for _, a := range s.attempts {
			if a.Code != codes.Unavailable || a.Peer == nil {
				t.Errorf("an attempt that ended with %s at %v", a.Code, a.Peer)
			}
		}
	}, interceptor.WithBreaker(func(string, string) interceptor.Gate { return gate }))
}

// late is a stream whose RecvMsg returns an error 2 s late.
type late struct{ grpc.ClientStream }

func (s late) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		time.Sleep(2 * time.Second)
	}
	return err
}

// The caller's own end stays the caller's, also if it comes while a silent attempt ends.
func TestMessageTimeout_CallersEnd(t *testing.T) {
	play(t, silent(), func(t *testing.T, s scene) {
		s.On(get, hush("1"))
		for i, timeout := range []time.Duration{29 * time.Second, 31 * time.Second} {
			s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(func(
				ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
			) (grpc.ClientStream, error) {
				inner, err := open(ctx, desc, cc, method, opts...)
				return late{inner}, err
			}))...)
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			_, err := s.watch(ctx, t)
			cancel()
			if status.Code(err) != codes.DeadlineExceeded || reasonOf(err) != policy.ReasonDeadlineExceeded || s.Count(get) != i+1 {
				t.Errorf("%v: %v (%s) after %d attempts", timeout, err, reasonOf(err), s.Count(get))
			}
		}
	})
}
