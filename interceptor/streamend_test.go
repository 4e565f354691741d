// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// overOnce reports whether the only call has ended once, with a code and no wait.
func (s scene) overOnce(t *testing.T, want codes.Code, attempts int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != 1 || s.calls[0].Code != want || s.Count(get) != attempts || s.retrier.Replayed() != 0 {
		t.Errorf("%d attempts, %d bytes kept, calls %+v; want one with %s after %d attempts",
			s.Count(get), s.retrier.Replayed(), s.calls, want, attempts)
	}
}

// The application does nothing more after it has cancelled; then RecvMsg says what has become of it.
func TestCancellingEndsAStreamAtOnceInEveryState(t *testing.T) {
	for name, row := range map[string]struct {
		retry    policy.RetrySpec
		script   []testserver.Step
		before   func(t *testing.T, stream grpc.ClientStream)
		attempts int
	}{
		"before the first message is sent": {
			plain(),
			[]testserver.Step{testserver.Hang()},
			func(*testing.T, grpc.ClientStream) {}, 1,
		},
		"after messages, while the server is silent": {
			plain(),
			[]testserver.Step{testserver.Hang()},
			func(t *testing.T, stream grpc.ClientStream) { send(t, stream, "a", "b") }, 1,
		},
		"with an attempt that failed unseen": {
			plain(),
			[]testserver.Step{down()},
			func(t *testing.T, stream grpc.ClientStream) { send(t, stream, "a"); time.Sleep(time.Second) }, 1,
		},
		"after an attempt that was replayed": {
			plain(),
			[]testserver.Step{down(), testserver.Hang()},
			func(t *testing.T, stream grpc.ClientStream) {
				send(t, stream, "a")
				time.Sleep(time.Second)
				send(t, stream, "b")
			}, 2,
		},
		"after an attempt that used up its timeout": {
			hasty(),
			[]testserver.Step{testserver.Hang()},
			func(t *testing.T, stream grpc.ClientStream) { send(t, stream, "a"); time.Sleep(1050 * ms) }, 1,
		},
		"after it was committed": {
			plain(),
			[]testserver.Step{testserver.Play(testserver.EchoAll())},
			func(t *testing.T, stream grpc.ClientStream) {
				send(t, stream, "a")
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
					t.Error(err)
				}
			}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(row.retry), func(t *testing.T, s scene) {
				s.On(get, row.script...)
				ctx, cancel := context.WithCancel(t.Context())
				stream := s.open(t, ctx, bidiStream)
				row.before(t, stream)
				cancel()
				s.overOnce(t, codes.Canceled, row.attempts)
				if _, err := receive(stream); status.Code(err) != codes.Canceled {
					t.Errorf("RecvMsg: %v", err)
				}
				ended(t, stream)
			})
		})
	}
}

func TestAnAttemptGivenUpForItsTimeoutIsFollowedEvenIfNobodyReceives(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream := s.open(t, t.Context(), clientStream)
		send(t, stream, "a")
		time.Sleep(1500 * ms)
		send(t, stream, "b")
		_ = stream.CloseSend()
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "sum" || s.waits() != "[1.1s]" {
			t.Errorf("%q, %v, waits %s; want the second attempt when the first is given up", m.GetValue(), err, s.waits())
		}
		if got := fmt.Sprint(s.heard(1)); got != "[a b]" {
			t.Errorf("the second attempt heard %s", got)
		}
	})
}

func TestCancellingAStreamThatWasGivenUpForItsTimeoutReleasesIt(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		stream := s.open(t, ctx, clientStream)
		send(t, stream, "a")
		time.Sleep(2 * time.Second)
		cancel()
		s.overOnce(t, codes.Canceled, 2)
	})
}

func TestCancellingInTheBackoffReturnsAtOnce(t *testing.T) {
	for name, wait := range map[string]func(stream grpc.ClientStream) error{
		"RecvMsg": func(stream grpc.ClientStream) error { return stream.RecvMsg(new(wrapperspb.StringValue)) },
		"SendMsg": func(stream grpc.ClientStream) error {
			time.Sleep(ms) // the attempt has failed
			if err := stream.SendMsg(wrapperspb.String("b")); err != io.EOF {
				return fmt.Errorf("SendMsg: %w", err)
			}
			return stream.RecvMsg(new(wrapperspb.StringValue))
		},
		"Header": func(stream grpc.ClientStream) error {
			if md, err := stream.Header(); md != nil || err != nil {
				return fmt.Errorf("Header: %v, %w", md, err)
			}
			return stream.RecvMsg(new(wrapperspb.StringValue))
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down())
				ctx, cancel := context.WithCancel(t.Context())
				stream := s.open(t, ctx, bidiStream)
				send(t, stream, "a")
				start := time.Now()
				time.AfterFunc(50*ms, cancel)
				err := wait(stream)
				if status.Code(err) != codes.Canceled || reasonOf(err) != policy.ReasonCancelled || time.Since(start) != 50*ms {
					t.Errorf("%v (%s) after %v; want CANCELLED after 50 ms", err, reasonOf(err), time.Since(start))
				}
				s.overOnce(t, codes.Canceled, 1)
			})
		})
	}
}

func TestClosingTheConnectionEndsAStreamThatWaitsWithoutAnotherAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		start := time.Now()
		time.AfterFunc(50*ms, func() { _ = s.conn.Close() })
		_, err := receive(stream)
		if status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonClosed || time.Since(start) != 50*ms {
			t.Errorf("%v (%s) after %v; want the server's error after 50 ms", err, reasonOf(err), time.Since(start))
		}
		s.overOnce(t, codes.Unavailable, 1)
	})
}

func TestClosingTheConnectionEndsAStreamThatNobodyCallsAgain(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		synctest.Wait()
		_ = s.conn.Close()
		s.overOnce(t, codes.Canceled, 1)
	})
}

func TestWhatALostAttemptBroughtIsNotShownAfterALastOneThatBroughtNothing(t *testing.T) {
	play(t, config(impatient()), func(t *testing.T, s scene) {
		s.On(get, down().Header(metadata.Pairs("from", "1")).Trailer(metadata.Pairs("end", "1")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		time.AfterFunc(50*ms, s.Down) // from now on attempts have no stream
		_, err := receive(stream)
		header, _ := stream.Header()
		if reasonOf(err) != policy.ReasonAttemptsExhausted || header != nil || stream.Trailer() != nil {
			t.Errorf("%v (%s) with header %v and trailer %v of another attempt", err, reasonOf(err), header, stream.Trailer())
		}
	})
}
