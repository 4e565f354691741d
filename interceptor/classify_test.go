// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// judge is a classifier that counts its calls.
type judge struct {
	mu    sync.Mutex // guards asked
	asked int
}

func (j *judge) classify(_ context.Context, _ string, reply any, err error) interceptor.Verdict {
	j.mu.Lock()
	j.asked++
	j.mu.Unlock()
	if m, ok := reply.(*wrapperspb.StringValue); ok && err == nil && m.GetValue() == "not yet" {
		return interceptor.VerdictNotYet
	}
	switch status.Convert(err).Message() {
	case "deadlock":
		return interceptor.VerdictRetry
	case "corrupt":
		return interceptor.VerdictFinal
	case "gone":
		return interceptor.VerdictFinal
	default:
		return interceptor.VerdictByCode
	}
}

func TestClassifier_NotYet(t *testing.T) {
	j, purse := new(judge), &purse{grants: 9}
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, text("not yet").Times(2), text("ready"))
		if got, err := s.call(t.Context(), get); got != "ready" || err != nil || s.waits() != "[100ms 200ms]" {
			t.Errorf("%q, %v, waits %s", got, err, s.waits())
		}
		if j.asked != 3 || purse.failed != 0 {
			t.Errorf("asked %d times; the budget: %v", j.asked, purse)
		}
	}, interceptor.WithClassifier(j.classify), interceptor.WithBudget("", forAll(purse)))
}

// says returns a classifier that always returns the same verdict, and counts in asked.
func says(v interceptor.Verdict, asked *int) interceptor.Option {
	return interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
		*asked++
		return v
	})
}

func TestClassifier_ReplyVerdicts(t *testing.T) {
	for name, row := range map[string]struct {
		verdict  interceptor.Verdict
		attempts int
		reason   policy.Reason
	}{
		"as code":   {interceptor.VerdictByCode, 1, policy.ReasonSucceeded},
		"final":     {interceptor.VerdictFinal, 1, policy.ReasonSucceeded},
		"try again": {interceptor.VerdictRetry, 4, policy.ReasonAttemptsExhausted},
		"not yet":   {interceptor.VerdictNotYet, 4, policy.ReasonAttemptsExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, text("reply"))
				if got, err := s.call(t.Context(), get); got != "reply" || err != nil || s.calls[0].Reason != row.reason || s.calls[0].Err != nil {
					t.Errorf("%q, %v, told of %+v; want %s", got, err, s.calls[0], row.reason)
				}
				if s.Count(get) != row.attempts || asked != row.attempts {
					t.Errorf("%d attempts, asked %d times; want %d", s.Count(get), asked, row.attempts)
				}
			}, says(row.verdict, &asked))
		})
	}
}

func TestClassifier_CancelledAfterNotYet(t *testing.T) {
	asked := 0
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("not yet"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		got, err := s.call(ctx, get)
		want := "context canceled before attempt 2; no server had returned an error"
		if status.Code(err) != codes.Canceled || status.Convert(err).Message() != want || reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%q, %v (%s)", got, err, reasonOf(err))
		}
	}, says(interceptor.VerdictRetry, &asked))
}

func TestClassifier_OneAttempt(t *testing.T) {
	asked := 0
	play(t, spec.Config{}, func(t *testing.T, s scene) {
		s.On(get, text("not yet"))
		if got, err := s.call(t.Context(), get); got != "not yet" || err != nil || asked != 0 {
			t.Errorf("%q, %v, asked %d times", got, err, asked)
		}
	}, says(interceptor.VerdictRetry, &asked))
}

// An inner interceptor that returns an error by itself may have left its attempt running, which writes into the reply.
func TestClassifier_LeftRunning(t *testing.T) {
	t.Parallel()
	for _, left := range []bool{false, true} {
		var seen []any
		classify := interceptor.WithClassifier(func(_ context.Context, _ string, reply any, _ error) interceptor.Verdict {
			seen = append(seen, reply)
			return interceptor.VerdictFinal
		})
		server := testserver.Start(t)
		server.On(get, testserver.Fail(codes.Unavailable))
		inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if left {
				return status.Error(codes.Unavailable, "of the interceptor")
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		conn := server.Dial(t, append(mustNew(t, mustSet(t, config(plain())), classify).DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
		_ = conn.Invoke(t.Context(), get, wrapperspb.String("x"), new(wrapperspb.StringValue))
		if len(seen) != 1 || (seen[0] == nil) != left {
			t.Errorf("left running: %v; the classifier has seen %v", left, seen)
		}
	}
}

// A service that tells its failures in replies, as some databases do: they count as failures for throttle, breaker, budget and method. A
// service that is well, and says "not yet", has none.
func TestClassifier_FailureInReply(t *testing.T) {
	for name, row := range map[string]struct {
		verdict     interceptor.Verdict
		asks        int // requests of the next call, after ten calls
		told        codes.Code
		failed, bad int // attempts and calls
	}{
		"a failure": {interceptor.VerdictRetry, 1, codes.Unavailable, 8, 2},
		"not yet":   {interceptor.VerdictNotYet, 4, codes.OK, 0, 0},
	} {
		t.Run(name+", throttle", func(t *testing.T) {
			asked := 0
			retry := plain()
			retry.Budget = "gRPC's"
			c := config(retry)
			c.Budgets = []spec.Budget{{Name: "gRPC's", Config: budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}}}
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, text("busy"))
				for range 10 {
					_, _ = s.call(t.Context(), get)
				}
				before := s.Count(get)
				if _, err := s.call(t.Context(), get); err != nil || s.Count(get)-before != row.asks {
					t.Errorf("%d requests, %v; want %d", s.Count(get)-before, err, row.asks)
				}
			}, says(row.verdict, &asked))
		})
		t.Run(name+", breaker and budget", func(t *testing.T) {
			asked := 0
			f, p := &fuse{limit: 10}, &purse{grants: 9}
			retry := plain()
			retry.Budget = ""
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, text("busy"))
				for range 2 {
					if got, err := s.call(t.Context(), get); got != "busy" || err != nil {
						t.Errorf("%q, %v", got, err)
					}
				}
				if len(f.told) != 8 || f.told[0] != row.told || f.told[7] != row.told {
					t.Errorf("the breaker hears %v; want %v", f.told, row.told)
				}
				if p.failed != row.failed || p.bad != row.bad || p.ok != 2-row.bad || p.wasted != 6 {
					t.Errorf("the budget: %+v; want %d failed attempts, %d failed calls", p, row.failed, row.bad)
				}
			}, says(row.verdict, &asked), withFuse(f), interceptor.WithBudget("", forAll(p)))
		})
	}
}

// An error may mean "not yet" as well: that of a poll whose server says NOT_FOUND until the result is there.
func TestClassifier_NotYetAsError(t *testing.T) {
	f, p := &fuse{limit: 2}, &purse{grants: 9}
	retry := plain()
	retry.Budget = ""
	asked := 0
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.NotFound))
		if _, err := s.call(t.Context(), get); status.Code(err) != codes.NotFound || s.Count(get) != 4 || f.String() != "4 [OK OK OK OK]" {
			t.Errorf("%v, %d requests; the breaker: %v", err, s.Count(get), f)
		}
		if p.failed != 0 || p.bad != 1 {
			t.Errorf("the budget: %+v", p)
		}
	}, says(interceptor.VerdictNotYet, &asked), withFuse(f), interceptor.WithBudget("", forAll(p)))
}

// A service tells its delay in a header of its own.
func TestClassifier_Delay(t *testing.T) {
	reset := func(ctx context.Context, _ string, _ any, _ error) (v interceptor.Verdict) {
		seconds, err := strconv.Atoi(strings.Join(interceptor.TrailerFromContext(ctx)["x-ratelimit-reset"], ""))
		if err == nil {
			v.Delay = time.Duration(seconds) * time.Second
		}
		return v
	}
	limited := func(seconds string) testserver.Step {
		return down().Trailer(metadata.Pairs("x-ratelimit-reset", seconds))
	}
	for name, row := range map[string]struct {
		step   testserver.Step
		waits  string
		reason policy.Reason
		rest   time.Duration // that the caller is told to wait
	}{
		"obeyed":                          {limited("7"), "[7s]", "", 0},
		"longer than maxPushback":         {limited("600"), "[]", policy.ReasonPushbackStop, 600 * time.Second},
		"longer than the deadline allows": {limited("90"), "[]", policy.ReasonDeadlineTooClose, 90 * time.Second},
		"the server's pushback wins":      {limited("7").Pushback("2000"), "[2s]", "", 0},
		"instead of RetryInfo":            {limited("7").RetryInfo(9 * time.Second), "[7s]", "", 0},
		"none: the server's own":          {down().RetryInfo(9 * time.Second), "[9s]", "", 0},
	} {
		for kind, desc := range callKinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, config(plain()), func(t *testing.T, s scene) {
					s.On(get, row.step.Times(1), text("good"))
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					err := exchange(ctx, s.conn, desc, get)
					if reasonOf(err) != row.reason || s.waits() != row.waits {
						t.Errorf("%v (%s) after %s; want %s after %s", err, reasonOf(err), s.waits(), row.reason, row.waits)
					}
					if row.rest > 0 && retryAfterOf(t, err) != row.rest {
						t.Errorf("RetryAfter %v; want %v", retryAfterOf(t, err), row.rest)
					}
				}, interceptor.WithClassifier(reset))
			})
		}
	}
}

// 200 processes are told "in 1 s" at the same time, by a server that then takes each for at least that: their requests are spread over the
// next second. Those told with grpc-retry-pushback-ms come within a tenth.
func TestRetryInfo_Spread(t *testing.T) {
	const processes = 200
	for name, row := range map[string]struct {
		step testserver.Step
		most int // requests in a tenth of a second
	}{
		"RetryInfo":              {down().RetryInfo(time.Second), processes/10 + 1},
		"retry-after":            {down().Trailer(metadata.Pairs("retry-after", "1")), processes/10 + 1},
		"grpc-retry-pushback-ms": {down().Pushback("1000"), processes},
	} {
		t.Run(name, func(t *testing.T) {
			retry := plain()
			retry.Backoff.Jitter = "FULL"
			var drawn atomic.Int64
			play(t, waiting(config(retry), 4*processes), func(t *testing.T, s scene) {
				s.connect()
				s.On(get, row.step.Times(processes), text("good"))
				began := time.Now()
				var calls sync.WaitGroup
				for range processes {
					calls.Go(func() {
						if _, err := s.call(t.Context(), get); err != nil {
							t.Error(err)
						}
					})
				}
				calls.Wait()
				tenths := map[int]int{}
				for _, a := range s.Attempts()[processes:] {
					tenths[int(a.Time.Sub(began)/(100*ms))]++
				}
				for tenth, n := range tenths {
					if tenth < 10 || n > row.most || row.most == processes && tenth > 10 {
						t.Errorf("%d requests in tenth %d of a second", n, tenth)
					}
				}
			}, interceptor.WithRandom(func() float64 { return float64(drawn.Add(1)%processes) / processes }))
		})
	}
}
