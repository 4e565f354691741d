// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// retryAfterOf returns when a loop may make the call again that has ended with err.
func retryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		return e.RetryAfter
	}
	return -1
}

// comesBack says for each reason whether a loop may make the call again: what docs/loops.md says.
var comesBack = map[policy.Reason]bool{
	policy.ReasonNonRetryable: false, policy.ReasonCommitted: false, policy.ReasonAttemptsExhausted: true, policy.ReasonNotIdempotent: false,
	policy.ReasonPushbackStop: false, policy.ReasonFollowed: false, policy.ReasonChainStop: false, policy.ReasonBreakerOpen: true,
	policy.ReasonLatencyUnknown: true, policy.ReasonSlowEverywhere: true, policy.ReasonOverloaded: true, policy.ReasonDeadlineTooClose: true,
	policy.ReasonTooManyWaiting: true, policy.ReasonBudgetExhausted: true, policy.ReasonRetry: false, policy.ReasonHedge: false,
	policy.ReasonSucceeded: false, policy.ReasonDeadlineExceeded: true, policy.ReasonCancelled: false, policy.ReasonClosed: false,
	policy.ReasonNotConnected: true, policy.ReasonModeOff: false,
}

func TestRetryAfter_Reason(t *testing.T) {
	t.Parallel()
	for _, e := range endings() {
		t.Run(string(e.reason)+"/"+e.name, func(t *testing.T) {
			play(t, e.config, func(t *testing.T, s scene) {
				err := e.call(t.Context(), t, s)
				if got := retryAfterOf(err); reasonOf(err) != e.reason || (got > 0) != comesBack[e.reason] || got < 0 {
					t.Errorf("%v (%s): again after %v; want one: %t", err, reasonOf(err), got, comesBack[e.reason])
				}
			}, e.options...)
		})
	}
	page := must.Get(os.ReadFile("../docs/loops.md"))(t)
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (yes|no)\\b").FindAllStringSubmatch(string(page), -1)
	for _, m := range row {
		if want, known := comesBack[policy.Reason(m[1])]; !known || want != (m[2] == "yes") {
			t.Errorf("docs/loops.md says %q of %s; want %t", m[2], m[1], want)
		}
	}
	if len(row) != 18 || len(comesBack) != len(decision.Reasons()) { // four reasons end no call that fails
		t.Errorf("docs/loops.md has %d reasons, this table %d; want 18 and %d", len(row), len(comesBack), len(decision.Reasons()))
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	later := plain()
	later.Backoff.Max = 8 * time.Second
	few := later
	few.MaxPushback = 10 * time.Second
	hour := later
	hour.Budget, hour.Backoff.Max = "", 800*ms
	details := must.Get(status.New(codes.Unavailable, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(90 * time.Second)}))(t)
	answers := func(steps ...testserver.Step) func(*testing.T, scene) error {
		return func(t *testing.T, s scene) error {
			t.Helper()
			return answering(steps...)(t.Context(), t, s)
		}
	}
	undeclared := func(prepare func(*testing.T, scene)) func(*testing.T, scene) error {
		return func(t *testing.T, s scene) error {
			t.Helper()
			prepare(t, s)
			_, err := s.call(t.Context(), create)
			return err
		}
	}
	for name, row := range map[string]struct {
		retry       policy.RetrySpec
		call        func(*testing.T, scene) error
		reason      policy.Reason
		least, most time.Duration // by chance
	}{
		"half to all of maxBackoff":           {later, answers(down()), policy.ReasonAttemptsExhausted, 4 * time.Second, 8 * time.Second},
		"the server's delay, and a tenth":     {later, answers(down().Times(3), down().Pushback("30000")), policy.ReasonAttemptsExhausted, 30 * time.Second, 33 * time.Second},
		"shorter than the backoff":            {later, answers(down().Times(3), down().Pushback("100")), policy.ReasonAttemptsExhausted, 100 * ms, 110 * ms},
		"what is left of an earlier delay":    {few, answers(down().Pushback("9000").Times(1), testserver.Fail(codes.NotFound)), policy.ReasonNonRetryable, 0, 0},
		"a delay that is too long to wait":    {few, answers(down().Pushback("60000")), policy.ReasonPushbackStop, time.Minute, 66 * time.Second},
		"RetryInfo":                           {few, answers(testserver.FailStatus(details)), policy.ReasonPushbackStop, 90 * time.Second, 99 * time.Second},
		"Retry-After":                         {few, answers(down().Trailer(metadata.Pairs("retry-after", "20"))), policy.ReasonPushbackStop, 20 * time.Second, 22 * time.Second},
		"the server forbids it":               {few, answers(down().Pushback("-1")), policy.ReasonPushbackStop, 0, 0},
		"forbidden in the last attempt":       {later, answers(down().Times(3), down().Pushback("-1")), policy.ReasonAttemptsExhausted, 0, 0},
		"the last attempt may have worked":    {later, undeclared(func(_ *testing.T, s scene) { s.On(create, down()) }), policy.ReasonNotIdempotent, 0, 0},
		"a deadline, of an undeclared method": {later, deadline(create), policy.ReasonDeadlineExceeded, 0, 0},
		"a deadline":                          {later, deadline(get), policy.ReasonDeadlineExceeded, 4 * time.Second, 8 * time.Second},
		"undeclared, and never sent":          {later, undeclared(func(t *testing.T, s scene) { t.Helper(); s.leave() }), policy.ReasonNotConnected, 4 * time.Second, 8 * time.Second},
		"the budget, after its window": {hour, func(t *testing.T, s scene) error {
			t.Helper()
			s.On(get, down())
			for range 5 {
				if _, err := s.call(t.Context(), get); reasonOf(err) == policy.ReasonBudgetExhausted {
					return err
				}
			}
			return nil
		}, policy.ReasonBudgetExhausted, 4 * time.Second, 6250 * ms},
	} {
		for chance, want := range map[float64]time.Duration{0: row.least, math.Nextafter(1, 0): row.most} {
			t.Run(fmt.Sprintf("%s, by a chance of %v", name, chance), func(t *testing.T) {
				play(t, config(row.retry), func(t *testing.T, s scene) {
					err := row.call(t, s)
					got := retryAfterOf(err)
					if reasonOf(err) != row.reason || got < row.least || got > row.most || row.least+ms < row.most && (got-want).Abs() > time.Second {
						t.Errorf("%v (%s): again after %v; want %v, in [%v, %v] of %s", err, reasonOf(err), got, want, row.least, row.most, row.reason)
					}
				}, interceptor.WithRandom(func() float64 { return chance }))
			})
		}
	}
}

// deadline is a call that hangs until its caller's deadline.
func deadline(method string) func(*testing.T, scene) error {
	return func(t *testing.T, s scene) error {
		t.Helper()
		s.On(method, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.call(ctx, method)
		return err
	}
}

// So it is with streams.
func TestRetryAfter_Stream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		if _, _, err := s.whole(t, serverStream); retryAfterOf(err) != 30*time.Second {
			t.Errorf("%v: again after %v; want 30s", err, retryAfterOf(err))
		}
		if _, _, err := s.whole(t, serverStream, interceptor.MaxAttempts(1)); retryAfterOf(err) != 30*time.Second {
			t.Errorf("of one attempt: %v: again after %v; want 30s", err, retryAfterOf(err))
		}
	})
}

// A loop that waits for RetryAfter in an hour's outage makes few requests, and one that goes on when that is 0 ends.
func TestRetryAfter_Loop(t *testing.T) {
	retry := policy.DefaultRetry()
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, down())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		loops := 0
		for ctx.Err() == nil {
			_, err := s.call(ctx, get)
			after := retryAfterOf(err)
			if after <= 0 {
				t.Fatalf("%v (%s): again after %v", err, reasonOf(err), after)
			}
			loops++
			select {
			case <-ctx.Done():
			case <-time.After(after):
			}
		}
		if n := s.Count(get); loops < 500 || n > 3600+3600 { // every 1 to 2 s, and the retries that the budget pays for
			t.Errorf("%d loops, %d requests", loops, n)
		}
		synctest.Wait()
	})
}
