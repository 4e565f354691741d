// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// heardBy is what the server received in every attempt.
func (s scene) heardBy() (all []string) {
	synctest.Wait()
	for n, a := range s.Attempts() {
		heard := fmt.Sprint(s.heard(n))
		if a.HalfClosed {
			heard += "."
		}
		all = append(all, heard)
	}
	return all
}

func TestAReplayGrowsWithWhatIsSentBetweenFailures(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			testserver.Play(testserver.Receive(1)).Then(down()),
			testserver.Play(testserver.Receive(2)).Then(down()),
			testserver.Play(testserver.Receive(3)).Then(down()),
			testserver.Play(testserver.ReceiveAll(), say("a", "b", "c", "d")))
		stream := s.open(t, t.Context(), bidiStream)
		for _, text := range []string{"a", "b", "c", "d"} {
			send(t, stream, text)
			time.Sleep(time.Second)
		}
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b c d]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if got := fmt.Sprint(s.heardBy()); got != "[[a] [a b] [a b c] [a b c d].]" {
			t.Errorf("the attempts heard %s", got)
		}
		if s.waits() != "[1.1s 1.2s 1.4s]" { // each failure is found when the next message is sent
			t.Errorf("waits %s", s.waits())
		}
	})
}

func TestTheHalfCloseIsReplayedAfterAllMessages(t *testing.T) {
	closed := 0
	counting := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return &closeCounter{stream, &closed}, err
	}
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(counting))...)
		s.On(get,
			testserver.Play(testserver.ReceiveAll()).Then(down()),
			testserver.Play(testserver.Receive(1)).Then(down()),
			testserver.Play(testserver.ReceiveAll(), say("sum")))
		stream, err := conn.NewStream(t.Context(), clientStream, get)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "a", "b")
		_ = stream.CloseSend()
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		all := s.heardBy()
		if all[0] != "[a b]." || all[2] != "[a b]." || closed != 3 {
			t.Errorf("the attempts heard %s, with %d closes; want one for each of 3 attempts", all, closed)
		}
	})
}

type closeCounter struct {
	grpc.ClientStream

	n *int
}

func (c *closeCounter) CloseSend() error {
	*c.n++
	return c.ClientStream.CloseSend()
}

func TestAStreamThatHasSentNothingIsRetried(t *testing.T) {
	for name, row := range map[string]struct {
		move testserver.Move
		want string
	}{
		"and stays open": {testserver.Pause(time.Second), "[[] []]"},
		"and is closed":  {testserver.ReceiveAll(), "[[]. [].]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(row.move).Then(down()), testserver.Play(row.move, say("a")))
				stream := s.open(t, t.Context(), bidiStream)
				if name == "and is closed" {
					_ = stream.CloseSend()
				}
				if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
					t.Errorf("%v, %v", got, err)
				}
				if got := fmt.Sprint(s.heardBy()); got != row.want {
					t.Errorf("the attempts heard %s; want %s", got, row.want)
				}
			})
		})
	}
}

func TestManyAnswersFollowARetry(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var many []string
		for n := range 1000 {
			many = append(many, fmt.Sprint(n))
		}
		s.On(get, down().Times(3), testserver.Play(testserver.Receive(1), say(many...)))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != fmt.Sprint(many) || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestHeaderFirstWaitsThroughAllAttempts(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		start := time.Now()
		md, err := stream.Header()
		if md != nil || err != nil || s.Count(get) != 4 || time.Since(start) != 700*ms {
			t.Errorf("%v, %v after %d attempts and %v; want no headers after 4 and 700 ms", md, err, s.Count(get), time.Since(start))
		}
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
	})
}

func TestAnAnswerThatCrossesTheTimeoutOfItsAttemptLosesNothing(t *testing.T) {
	for _, at := range []time.Duration{999 * ms, 1000 * ms, 1050 * ms, 1099 * ms, 1100 * ms, 1101 * ms} {
		t.Run(at.String(), func(t *testing.T) {
			play(t, config(hasty()), func(t *testing.T, s scene) {
				s.On(get,
					testserver.Play(testserver.Receive(1), testserver.Pause(at), say("1a"), testserver.Pause(time.Minute), say("1b")),
					testserver.Play(testserver.Receive(1), say("2a", "2b")))
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "x")
				got, err := receive(stream)
				first, second := "[1a 1b] 1", "[2a 2b] 2"
				synctest.Wait()
				now := fmt.Sprint(got, " ", s.Count(get))
				if err != io.EOF || now != first && now != second || at < 1100*ms && now != first || at > 1100*ms && now != second {
					t.Errorf("%s, %v", now, err)
				}
			})
		})
	}
}

// check compares what happened with what may happen.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	last := m.Count(get)
	told := fmt.Sprintf("attempts %v; sender %v, receiver %v; got %v, header of %q, %v (%s) after %d attempts",
		m.attempts, m.sends, m.receives, m.got, m.header, m.end, reasonOf(m.end), last)
	if last > 4 {
		t.Fatalf("%d attempts: %s", last, told)
	}
	script := m.script(last)
	if want := script.sent(last); len(m.got) > len(want) || !slices.Equal(m.got, want[:len(m.got)]) {
		t.Fatalf("got %v of %v: %s", m.got, want, told)
	}
	if m.end == io.EOF && (script.end != "ok" || len(m.got) != len(script.sent(last))) {
		t.Fatalf("success of a stream that was cut: %s", told)
	}
	if len(m.header) > 1 && m.header != fmt.Sprint(last, "-") {
		t.Fatalf("headers of another attempt than %d: %s", last, told)
	}
	m.checkServer(t, told)
	if len(m.calls) != 1 || m.finished != 1 || m.retrier.Replayed() != 0 {
		t.Fatalf("told of %+v, OnFinish called %d times, %d bytes kept: %s", m.calls, m.finished, m.retrier.Replayed(), told)
	}
	m.checkEnd(t, told)
}

// checkServer checks that each attempt heard the beginning of what was sent.
func (m *model) checkServer(t *rapid.T, told string) {
	for i, a := range m.Attempts() {
		heard := m.heard(i)
		if len(heard) > len(m.sent) || !slices.Equal(heard, m.sent[:len(heard)]) {
			t.Fatalf("attempt %d heard %v of %v: %s", i+1, heard, m.sent, told)
		}
		if a.HalfClosed && len(heard) < m.accepted {
			t.Fatalf("attempt %d heard %v of %d messages before the close: %s", i+1, heard, m.accepted, told)
		}
	}
}

// checkEnd checks that a failure was final only where it had to be. An attempt on a connection that
// was dropped may not have reached the server.
func (m *model) checkEnd(t *rapid.T, told string) {
	made, heard, stopped := m.calls[0].Attempts, m.Count(get), 0
	for _, e := range m.journal.attempts {
		if e.Place == interceptor.PlaceCancelled {
			stopped++ // maybe as it was sent
		}
	}
	cut := slices.ContainsFunc(m.attempts, func(a attemptScript) bool { return a.end == "drop" || a.end == "cut" })
	if made < heard || made > heard+stopped && !cut {
		t.Fatalf("%d attempts were made, %d arrived: %s", made, heard, told)
	}
	seen := len(m.got) > 0 || m.header != "" || strings.Contains(fmt.Sprint(m.sends, m.receives), "context")
	if reasonOf(m.end) == policy.ReasonCommitted && !seen {
		t.Fatalf("committed to an attempt that nobody has seen: %s", told)
	}
	if status.Code(m.end) == codes.Unavailable && !seen && made < 4 {
		t.Fatalf("given up without need: %s", told)
	}
}

func TestPushbackOnAStreamIsObeyedInAllItsForms(t *testing.T) {
	stop := "[] pushback_stop"
	for name, row := range map[string]struct {
		step testserver.Step
		want string
	}{
		"a delay":                 {down().Pushback("700"), "[700ms] succeeded"},
		"no delay":                {down().Pushback("0"), "[0s] succeeded"},
		"retry info":              {down().RetryInfo(3 * time.Second), "[3s] succeeded"},
		"retry-after":             {down().RetryAfter("2"), "[2s] succeeded"},
		"pushback wins":           {down().Pushback("700").RetryInfo(3 * time.Second).RetryAfter("2"), "[700ms] succeeded"},
		"retry info wins":         {down().RetryInfo(3 * time.Second).RetryAfter("2"), "[3s] succeeded"},
		"after headers":           {down().Header(metadata.Pairs("from", "1")).Pushback("700"), "[700ms] succeeded"},
		"stop":                    {down().Pushback("-1"), stop},
		"nonsense":                {down().Pushback("soon"), stop},
		"empty":                   {down().Pushback(""), stop},
		"a plus sign":             {down().Pushback("+5"), stop},
		"leading zeros":           {down().Pushback("005"), stop},
		"a fraction":              {down().Pushback("1.5"), stop},
		"two values":              {down().Pushback("5", "5"), stop},
		"more than 32 bits":       {down().Pushback("2147483648"), stop},
		"more than is waited for": {down().Pushback("300001"), stop},
		"a code that is not retried": {
			testserver.Fail(codes.NotFound).Pushback("5"),
			"[] non_retryable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.step, testserver.Play(testserver.Receive(1), say("a")))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				_, _ = receive(stream)
				if got := fmt.Sprint(s.waits(), " ", s.calls[0].Reason); got != row.want {
					t.Errorf("%s; want %s", got, row.want)
				}
			})
		})
	}
}

func TestPushbackRestartsTheBackoffOfAStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), down().Pushback("700"), down(), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || s.waits() != "[100ms 700ms 100ms]" {
			t.Errorf("%v, %v, waits %s", got, err, s.waits())
		}
	})
}

func TestEveryAttemptOfAStreamTellsHowManyWentBefore(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(2), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme"), bidiStream)
		send(t, stream, "x")
		_, _ = receive(stream)
		var counts []string
		for _, a := range s.Attempts() {
			counts = append(counts, fmt.Sprint(a.Metadata["grpc-previous-rpc-attempts"], a.Metadata["tenant"]))
		}
		if got := strings.Join(counts, " "); got != "[] [acme] [1] [acme] [2] [acme]" {
			t.Errorf("the server saw %s", got)
		}
	})
}

func TestAStreamThatMayNotFollowEndsWithTheServersErrorAtOnce(t *testing.T) {
	for want, row := range map[policy.Reason]struct {
		method  string
		retry   func(*policy.RetrySpec)
		timeout time.Duration
	}{
		policy.ReasonNotIdempotent:    {method: create},
		policy.ReasonDeadlineTooClose: {method: get, timeout: 90 * ms},
		policy.ReasonBudgetExhausted:  {method: get, retry: func(r *policy.RetrySpec) { r.Budget = "" }},
		policy.ReasonNonRetryable:     {method: get, retry: func(r *policy.RetrySpec) { r.Codes = policy.Codes(codes.Aborted) }},
	} {
		t.Run(string(want), func(t *testing.T) {
			retry := plain()
			if row.retry != nil {
				row.retry(&retry)
			}
			p := &purse{Budget: nil, grants: 0}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(row.method, down())
				ctx := t.Context()
				if row.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.timeout)
					defer cancel()
				}
				stream, err := s.conn.NewStream(ctx, bidiStream, row.method)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				send(t, stream, "x")
				_, err = receive(stream)
				if status.Code(err) != codes.Unavailable || reasonOf(err) != want || s.Count("*") != 1 || time.Since(start) != 0 {
					t.Errorf("%v (%s) after %d attempts and %v; want %s at once", err, reasonOf(err), s.Count("*"), time.Since(start), want)
				}
			}, interceptor.WithBudget("", p))
		})
	}
}

func TestAStreamOfAnUnsafeMethodIsRepeatedWhereItIsDeclaredSafe(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(create, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream, err := s.conn.NewStream(t.Context(), bidiStream, create, interceptor.Idempotent())
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestDisableLetsAStreamPassBy(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream, interceptor.Disable())
		send(t, stream, "x")
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || s.Count(get) != 1 || len(s.calls) != 0 {
			t.Errorf("%v after %d attempts, calls %+v", err, s.Count(get), s.calls)
		}
	})
}
