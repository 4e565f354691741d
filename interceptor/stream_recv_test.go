// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// letters is a codec of messages that are no pointers, in as many pieces as they have letters.
type letters struct{}

func (letters) Name() string { return "letters" }

func (letters) Marshal(v any) (data mem.BufferSlice, err error) {
	for _, letter := range v.(string) {
		data = append(data, mem.SliceBuffer(string(letter)))
	}
	return data, nil
}

func (letters) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*string) = string(data.Materialize())
	return nil
}

func TestMessagesThatAreNoPointersAreReplayed(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(4)).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.ForceCodecV2(letters{}))
		for _, text := range []string{"one", "", "one", "four"} {
			if err := stream.SendMsg(text); err != nil {
				t.Fatal(err)
			}
		}
		_ = stream.CloseSend()
		var got []string
		var text string
		for stream.RecvMsg(&text) == nil {
			got = append(got, text)
		}
		if fmt.Sprintf("%q", got) != `["one" "" "one" "four"]` || s.Count(get) != 2 {
			t.Errorf("%q in %d attempts", got, s.Count(get))
		}
	})
}

// pair is a message of a codec, and what is in it is another one, at the same address.
type pair struct{ inner inner }

type inner struct{ text string }

type pairs struct{ letters }

func (pairs) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *pair:
		return mem.BufferSlice{mem.SliceBuffer("whole " + v.inner.text)}, nil
	case *inner:
		return mem.BufferSlice{mem.SliceBuffer("part " + v.text)}, nil
	}
	return nil, fmt.Errorf("%T", v)
}

func (pairs) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *pair:
		v.inner.text = strings.TrimPrefix(string(data.Materialize()), "whole ")
	case *string:
		*v = string(data.Materialize())
	}
	return nil
}

// unwrapper sends what is in a message.
type unwrapper struct{ grpc.ClientStream }

func (u unwrapper) SendMsg(m any) error { return u.ClientStream.SendMsg(&m.(*pair).inner) }

func TestAMessageIsNotTakenForItsFirstField(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return unwrapper{stream}
			}
			return stream
		})
		s.On(get, testserver.Play(testserver.Receive(1)).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.ForceCodecV2(pairs{}))
		if err := stream.SendMsg(&pair{inner{"a"}}); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		var text string
		if err := stream.RecvMsg(&text); err != nil || text != "whole a" || string(s.Attempts()[0].Requests[0]) != "part a" {
			t.Errorf("%q, %v; the first attempt heard %q", text, err, s.Attempts()[0].Requests)
		}
	})
}

// ended is what SendMsg says of a stream that the server has ended: io.EOF, after which RecvMsg
// tells how.
func ended(t *testing.T, stream grpc.ClientStream) {
	t.Helper()
	if err := stream.SendMsg(wrapperspb.String("more")); err != io.EOF {
		t.Errorf("SendMsg to a stream that has ended: %v; want io.EOF", err)
	}
}

func TestAnEarlyReplyToAClientStreamThatStillSendsIsNotLost(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("enough")))
		stream := s.open(t, t.Context(), clientStream)
		send(t, stream, "a")
		time.Sleep(time.Second)
		ended(t, stream)
		ended(t, stream)
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "enough" {
			t.Errorf("%q, %v; want the reply", m.GetValue(), err)
		}
		if err := stream.RecvMsg(m); err != io.EOF {
			t.Errorf("RecvMsg after the reply: %v; want io.EOF", err)
		}
		if s.Count(get) != 1 || len(s.calls) != 1 || s.calls[0].Reason != policy.ReasonSucceeded {
			t.Errorf("%d attempts, calls %+v", s.Count(get), s.calls)
		}
	}, described(t))
}

func TestMessagesThatCameBeforeAnEarlyEndAreNotLost(t *testing.T) {
	for name, row := range map[string]struct {
		end  testserver.Step
		want codes.Code
	}{
		"success": {testserver.OK(), codes.OK},
		"failure": {down(), codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.Receive(1), say("x", "y", "z")).Then(row.end))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "a")
				time.Sleep(time.Second)
				ended(t, stream)
				got, err := receive(stream)
				if err == io.EOF {
					err = nil
				}
				if fmt.Sprint(got) != "[x y z]" || status.Code(err) != row.want || s.Count(get) != 1 {
					t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
				}
			}, described(t))
		})
	}
}

func TestAStreamThatEndsAtOnceWithOKIsNoFailure(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1)))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		if md, err := stream.Header(); md.Get("content-type") != nil && err != nil {
			t.Errorf("Header: %v, %v", md, err)
		}
		time.Sleep(time.Second)
		ended(t, stream)
		if got, err := receive(stream); got != nil || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if s.Count(get) != 1 || len(s.calls) != 1 || s.calls[0].Reason != policy.ReasonSucceeded {
			t.Errorf("%d attempts, calls %+v", s.Count(get), s.calls)
		}
	})
}

func TestHeaderAndTrailerOfAnEarlyReplyAreThoseOfItsAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			down().Header(metadata.Pairs("from", "1")).Trailer(metadata.Pairs("end", "1")),
			testserver.Play(testserver.Receive(2), say("enough")).Header(metadata.Pairs("from", "2")).Trailer(metadata.Pairs("end", "2")))
		stream := s.open(t, t.Context(), clientStream)
		send(t, stream, "a")
		time.Sleep(time.Second)
		send(t, stream, "b") // finds the failure
		time.Sleep(time.Second)
		ended(t, stream)
		md, err := stream.Header()
		if got := fmt.Sprint(md["from"], err, stream.Trailer()["end"]); got != "[2] <nil> [2]" {
			t.Errorf("header, error, trailer: %s", got)
		}
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != "enough" {
			t.Errorf("%q, %v; want the reply", m.GetValue(), err)
		}
	}, described(t))
}

func TestAMessageCutInItsMiddleIsNotDeliveredButEndsACommittedStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("a", "b"), testserver.Cut()))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		synctest.Wait()
		if fmt.Sprint(got) != "[a b]" || status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonCommitted || s.Count(get) != 1 {
			t.Errorf("%v, %v: %s after %d attempts", got, err, reasonOf(err), s.Count(get))
		}
	})
}

func TestAFirstMessageCutInItsMiddleIsAskedForAgain(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), testserver.Cut()), testserver.Play(testserver.Receive(1), say("a", "b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b]" || err != io.EOF || s.Count(get) != 2 {
			t.Errorf("%v, %v after %d attempts", got, err, s.Count(get))
		}
	})
}

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
