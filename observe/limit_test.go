// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if !slices.Contains([]string{"level", "msg", "method", "reason", "more"}, a.Key) {
				return slog.Attr{}
			}
			return a
		}})), observe.Limit(2))
		fail := func(method string, reason policy.Reason, n int) {
			for range n {
				o.Call(t.Context(), interceptor.Event{Method: method, Reason: reason, Attempt: 2, Code: codes.Unavailable, Err: errors.New("down")})
			}
		}
		retry := func(method string, n int) {
			for range n {
				o.Sent(t.Context(), interceptor.Event{Method: method, Retry: true, Reason: policy.ReasonRetry})
			}
		}
		const failed = `level=WARN msg="stagger: call failed" method=`
		const retried = `level=INFO msg="stagger: retry" method=`
		expect := func(lines ...string) {
			t.Helper()
			got := strings.FieldsFunc(out.take(), func(r rune) bool { return r == '\n' })
			slices.Sort(got)
			slices.Sort(lines)
			if !slices.Equal(got, lines) {
				t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
			}
		}

		fail("A", policy.ReasonBudgetExhausted, 1000)
		fail("A", policy.ReasonAttemptsExhausted, 2)
		retry("A", 3)
		fail("B", policy.ReasonBudgetExhausted, 1)
		expect(failed+"A reason=budget_exhausted", failed+"A reason=budget_exhausted", failed+"A reason=attempts_exhausted",
			failed+"A reason=attempts_exhausted", retried+"A", retried+"A", failed+"B reason=budget_exhausted")
		time.Sleep(time.Second - 1)
		fail("B", policy.ReasonBudgetExhausted, 3)
		expect(failed + "B reason=budget_exhausted")
		time.Sleep(time.Second)
		expect(failed+"A reason=budget_exhausted more=998", retried+"A reason=retry more=1", failed+"B reason=budget_exhausted more=2")
		fail("A", policy.ReasonBudgetExhausted, 1)
		expect(failed + "A reason=budget_exhausted")
		time.Sleep(time.Hour)
		expect()
	})
}

// Without an option, an outage writes a few lines per second, even with many invented names.
func TestLimitByDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
		fail := func(method string) {
			o.Call(t.Context(), interceptor.Event{Method: method, Reason: policy.ReasonBudgetExhausted, Attempt: 1, Code: codes.Unavailable, Err: errors.New("down")})
		}
		for range 1000 {
			fail("/acme.orders.v1.OrderService/GetOrder")
		}
		if got := strings.Count(out.take(), "\n"); got != 10 {
			t.Errorf("%d lines of 1000 failed calls; want %d", got, 10)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := out.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "more=990") {
			t.Errorf("after a second: %s", got)
		}
		for i := range 1000 {
			fail(fmt.Sprintf("/invented/%d", i))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := out.take(); strings.Count(got, "\n") != 111 || !strings.Contains(got, "method=other") || !strings.Contains(got, "more=890") {
			t.Errorf("%d lines of 1000 invented methods; want one of each of the first 100, 10 of the others, and how many more", strings.Count(got, "\n"))
		}
	})
}

// Changes of the policies and warnings are always logged.
func TestLimitOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)), observe.Limit(0))
		set, err := policy.NewSet(policy.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			o.Call(context.Background(), interceptor.Event{Attempt: 2, Reason: policy.ReasonSucceeded})
			o.Reload(set, nil, nil)
			o.Diagnostic(policy.Diagnostic{})
		}
		if got := strings.Count(out.take(), "\n"); got != 6 {
			t.Errorf("%d lines; want 6", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := out.take(); !strings.Contains(got, `msg="stagger: call succeeded after retries" method="" reason=succeeded more=3`) {
			t.Errorf("logged %q", got)
		}
	})
}

func TestSlogNamesTheBudgetThatRefused(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]bool{"": false, "orders": true} {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
		o.Call(t.Context(), interceptor.Event{Budget: budget, Attempt: 1, Code: codes.Unavailable, Reason: policy.ReasonBudgetExhausted, Err: errors.New("down")})
		o.Call(t.Context(), interceptor.Event{Budget: budget, Attempt: 2, Code: codes.Unavailable, Reason: policy.ReasonAttemptsExhausted, Err: errors.New("down")})
		if got := out.take(); strings.Count(got, "budget=") != map[bool]int{true: 1}[want] {
			t.Errorf("%q: logged %s", fmt.Sprint(budget), got)
		}
	}
}
