// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// These hold what docs/streams.md says of streams that live forever; TestResume and TestKeepalive hold the rest.

// feed is an attempt of a watch: after a pause it brings some messages, and then it ends, with an error if there is one.
func feed(some int, pause time.Duration, end ...testserver.Step) testserver.Step {
	texts := make([]string, some)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	step := moves.Play(moves.Receive(1), moves.Pause(pause), say(texts...))
	if len(end) > 0 {
		step = step.Then(end[0])
	}
	return step
}

// watch is the application's side of a watch that is resumed: it opens one, and receives until it ends.
func (s scene) watch(ctx context.Context, t *testing.T, opts ...grpc.CallOption) (got []string, err error) {
	t.Helper()
	stream := s.open(t, ctx, serverStream, append([]grpc.CallOption{interceptor.Resume(after)}, opts...)...)
	send(t, stream, "from the start")
	_ = stream.CloseSend()
	return receive(stream)
}

// A stream that is cut each minute goes on for a day, with a policy of four attempts.
func TestForever_MaxAttempts(t *testing.T) {
	retry := plain()
	retry.Backoff.Max = 10 * time.Second
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, feed(1, time.Minute, down()))
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		got, err := s.watch(ctx, t)
		if n := s.Count(get); reasonOf(err) != policy.ReasonDeadlineExceeded || len(got) < 1400 || n != len(got)+1 {
			t.Errorf("%d messages of %d attempts, %v (%s)", len(got), n, err, reasonOf(err))
		}
	})
}

// The backoff grows while attempts break early, and restarts after one that has run for longer than maxBackoff.
func TestForever_Backoff(t *testing.T) {
	for runs, want := range map[time.Duration]string{
		0:               "[100ms 200ms 400ms 800ms 1.6s 2s 2s]",
		2 * time.Second: "[2.1s 2.2s 2.4s 2.8s 3.6s 4s 4s]", // no longer than maxBackoff
		3 * time.Second: "[3.1s 3.1s 3.1s 3.1s 3.1s 3.1s 3.1s]",
	} {
		t.Run(runs.String(), func(t *testing.T) {
			retry := plain()
			retry.Backoff.Max = 2 * time.Second
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, feed(1, runs, down()).Times(7), text("the end"))
				if _, err := s.watch(t.Context(), t); err != io.EOF || s.waits() != want {
					t.Errorf("%v, attempts after %s; want %s", err, s.waits(), want)
				}
			})
		})
	}
}

// The ends of a resumed stream, and when a loop may open another.
func TestForever_Ends(t *testing.T) {
	cut := feed(1, 0, down()).Times(1)
	next := func(steps ...testserver.Step) func(*testing.T, scene) {
		return func(_ *testing.T, s scene) { s.On(get, append([]testserver.Step{cut}, steps...)...) }
	}
	for name, row := range map[string]struct {
		prepare func(*testing.T, scene)
		change  func(*policy.Spec)
		opts    []grpc.CallOption
		reason  policy.Reason // "": io.EOF
	}{
		"the server ends it":                   {prepare: next(feed(1, 0))},
		"a code that is not listed":            {prepare: next(testserver.Fail(codes.OutOfRange, "too old")), reason: policy.ReasonNonRetryable},
		"four attempts without a message":      {prepare: next(down()), reason: policy.ReasonAttemptsExhausted},
		"the server forbids it":                {prepare: next(down().Pushback("-1")), reason: policy.ReasonPushbackStop},
		"the function of Resume declines":      {prepare: next(), opts: []grpc.CallOption{interceptor.Resume(func(proto.Message) (proto.Message, bool) { return nil, false })}, reason: policy.ReasonCommitted},
		"no Resume":                            {prepare: next(), opts: []grpc.CallOption{interceptor.Resume(nil)}, reason: policy.ReasonCommitted},
		"the policy's timeout, progress or no": {prepare: func(_ *testing.T, s scene) { s.On(get, feed(1, 3*time.Second, down())) }, change: func(s *policy.Spec) { s.Timeout = 10 * time.Second }, reason: policy.ReasonDeadlineExceeded},
		"the budget":                           {prepare: next(), change: func(s *policy.Spec) { s.Retry.Budget = "broke" }, reason: policy.ReasonBudgetExhausted},
		"no connection": {prepare: func(_ *testing.T, s scene) {
			s.On(get, moves.Play(moves.Receive(1), say("0"), moves.Pause(time.Second), moves.Cut()))
			time.AfterFunc(500*ms, s.Down)
		}, reason: policy.ReasonNotConnected},
		"Retrier.Close": {prepare: func(_ *testing.T, s scene) {
			s.On(get, feed(1, time.Second, down()))
			time.AfterFunc(1050*ms, s.retrier.Close)
		}, reason: policy.ReasonClosed},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(plain())
			if row.change != nil {
				row.change(&c.Methods[0].Spec)
			}
			c.Budgets = []policy.BudgetSpec{{Name: "broke", Config: budget.RatioConfig{Percent: 0.0001, Window: time.Second, TimeoutCost: 1}}}
			play(t, c, func(t *testing.T, s scene) {
				row.prepare(t, s)
				_, err := s.watch(t.Context(), t, row.opts...)
				if row.reason == "" && err == io.EOF {
					return
				}
				if reasonOf(err) != row.reason {
					t.Errorf("%v (%s); want %s", err, reasonOf(err), row.reason)
				}
			})
		})
	}
}

// A ratio charges for a cut once, and what was charged leaves its window while the stream goes on. A concurrent budget counts a
// resumed stream for as long as it runs, so that others end when they are cut an hour later.
func TestForever_Budget(t *testing.T) {
	ratio := budget.DefaultRatio()
	ratio.Percent, ratio.MinPerSecond = 0.0001, 0.4 // 2 in 5 s
	for name, row := range map[string]struct {
		config budget.Config
		want   string
	}{
		"ratio":      {ratio, "[EOF EOF EOF EOF]"},
		"concurrent": {budget.ConcurrentConfig{Percent: 0.0001, Min: 2}, "[EOF EOF budget_exhausted budget_exhausted]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, budgeted(policy.BudgetSpec{Config: row.config}), func(t *testing.T, s scene) {
				ends := make([]string, 4)
				for i := range ends {
					s.On(get, feed(1, 0, down()).Times(1), feed(1, 10*time.Hour))
					go func() {
						_, err := s.watch(t.Context(), t)
						if ends[i] = string(reasonOf(err)); err == io.EOF {
							ends[i] = "EOF"
						}
					}()
					time.Sleep(time.Hour)
				}
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if got := fmt.Sprint(ends); got != row.want {
					t.Errorf("the streams end with %s; want %s", got, row.want)
				}
			})
		})
	}
}

// Ten streams are cut at once. The default budget resumes four or five of them, and one whose reserve covers them all.
func TestForever_AllAtOnce(t *testing.T) {
	covers := budget.DefaultRatio()
	covers.MinPerSecond = 4
	retry := plain()
	retry.Budget = ""
	for name, row := range map[string]struct {
		config      policy.Config
		least, most int
	}{
		"the default":                 {config(retry), 4, 5},
		"one with a reserve of 4 ÷ s": {budgeted(policy.BudgetSpec{Config: covers}), 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, moves.Play(moves.Receive(1), say("1"), moves.Pause(time.Minute)).Then(down()).Times(10), feed(1, 0))
				ends := make(chan error)
				for range 10 {
					go func() {
						_, err := s.watch(t.Context(), t)
						ends <- err
					}()
				}
				resumed := 0
				for range 10 {
					if err := <-ends; err == io.EOF {
						resumed++
					} else if reasonOf(err) != policy.ReasonBudgetExhausted {
						t.Errorf("%v (%s)", err, reasonOf(err))
					}
				}
				if resumed < row.least || resumed > row.most {
					t.Errorf("%d are resumed; want %d to %d", resumed, row.least, row.most)
				}
			})
		})
	}
}

// After its first message, a stream keeps no sent messages for replay, and of the received ones only a copy of the last.
func TestForever_Memory(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, feed(1000, 0, down()).Times(3), text("the end"))
		var copies []weak.Pointer[wrapperspb.StringValue]
		next := func(last proto.Message) (proto.Message, bool) {
			m, ok := last.(*wrapperspb.StringValue)
			copies = append(copies, weak.Make(m))
			return wrapperspb.String("after " + m.GetValue()), ok
		}
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(next))
		send(t, stream, strings.Repeat("x", 1<<10))
		kept := s.retrier.Replayed()
		_ = stream.CloseSend()
		var most int64
		for range 3001 {
			if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the first message may come before all is sent again
			most = max(most, s.retrier.Replayed())
		}
		if kept < 1<<10 || most != 0 {
			t.Errorf("%d bytes are kept before the first message, %d after it; want 1024 and some, and none", kept, most)
		}
		runtime.GC()
		alive := slices.DeleteFunc(copies, func(p weak.Pointer[wrapperspb.StringValue]) bool { return p.Value() == nil })
		if len(copies) != 3 || len(alive) > 0 {
			t.Errorf("%d of %d copies are kept; want none of 3: the last message is another one", len(alive), len(copies))
		}
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
			t.Error(err)
		}
	})
}

// A stream that may be quiet for minutes must have no per-attempt timeout and no hedging: until the first message, and after each cut
// until the next one, quiet counts as slow.
func TestForever_Quiet(t *testing.T) {
	slow := plain()
	slow.PerAttemptTimeout = time.Second
	for name, row := range map[string]struct {
		config   policy.Config
		requests int
	}{
		"no timeout":            {config(plain()), 2},
		"a per-attempt timeout": {config(slow), 4}, // that of the cut stream is the first of four
		"hedging":               {hedged(), 3},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, feed(1, 0, down()).Times(1), feed(1, time.Minute))
				if _, err := s.watch(t.Context(), t); err != io.EOF || s.Count(get) != row.requests {
					t.Errorf("%v, %d requests; want %d", err, s.Count(get), row.requests)
				}
			})
		})
	}
}
