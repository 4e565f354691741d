// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
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

// The first line of a message, method and reason comes at once, and then one every ten seconds while there are more.
func TestSummaries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if !slices.Contains([]string{"level", "msg", "method", "reason", "more"}, a.Key) {
				return slog.Attr{}
			}
			return a
		}})))
		fail := func(method string, reason policy.Reason, n int) {
			for range n {
				o.CallEnd(t.Context(), interceptor.CallEnd{Method: method, Reason: reason, Attempts: 2, Code: codes.Unavailable, Err: errors.New("down")})
			}
		}
		retry := func(method string, n int) {
			for range n {
				o.Sent(t.Context(), interceptor.Event{Method: method, WillRetry: true, Reason: policy.ReasonRetry})
			}
		}
		const failed = `level=WARN msg="stagger: call failed" method=`
		const retried = `level=INFO msg="stagger: retry" method=`
		expect := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			got := strings.FieldsFunc(out.take(), func(r rune) bool { return r == '\n' })
			slices.Sort(got)
			slices.Sort(lines)
			if !slices.Equal(got, lines) {
				t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
			}
		}

		fail("A", policy.ReasonBudgetExhausted, 1000)
		fail("A", policy.ReasonAttemptsExhausted, 2)
		fail("A", policy.ReasonPushbackStop, 2) // a layer below logs it
		retry("A", 3)
		expect(failed+"A reason=budget_exhausted", failed+"A reason=attempts_exhausted", retried+"A")
		time.Sleep(5 * time.Second)
		fail("B", policy.ReasonBudgetExhausted, 4)
		expect(failed + "B reason=budget_exhausted")
		time.Sleep(5 * time.Second)
		expect(failed+"A reason=budget_exhausted more=999", failed+"A reason=attempts_exhausted more=1", retried+"A reason=retry more=2")
		fail("A", policy.ReasonBudgetExhausted, 7)
		expect()
		time.Sleep(10 * time.Second)
		expect(failed+"A reason=budget_exhausted more=7", failed+"B reason=budget_exhausted more=3")
		time.Sleep(11 * time.Second) // quiet
		fail("A", policy.ReasonBudgetExhausted, 1)
		expect(failed + "A reason=budget_exhausted")
		time.Sleep(time.Hour)
		expect()

		for i := range 1000 {
			fail(fmt.Sprintf("/invented/%d", i), policy.ReasonBudgetExhausted, 1)
		}
		if got := strings.Count(out.take(), "\n"); got != 101 {
			t.Errorf("%d lines of 1000 invented methods; want 100, and one of the others", got)
		}
		time.Sleep(10 * time.Second)
		expect(failed + "other reason=budget_exhausted more=899")
		time.Sleep(time.Hour)
	})
}

func TestSlogNamesTheBudgetThatRefused(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]bool{"": false, "orders": true} {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
		o.CallEnd(t.Context(), interceptor.CallEnd{Budget: budget, Attempts: 1, Code: codes.Unavailable, Reason: policy.ReasonBudgetExhausted, Err: errors.New("down")})
		o.CallEnd(t.Context(), interceptor.CallEnd{Budget: budget, Attempts: 2, Code: codes.Unavailable, Reason: policy.ReasonAttemptsExhausted, Err: errors.New("down")})
		if got := out.take(); strings.Count(got, "budget=") != map[bool]int{true: 1}[want] {
			t.Errorf("%q: logged %s", fmt.Sprint(budget), got)
		}
	}
}
