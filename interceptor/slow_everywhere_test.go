// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// watchful sends an attempt in parallel with a slow one, or instead of it, after 200 ms and a backoff of 100 ms.
func watchful(inPlace bool) spec.Config {
	retry := plain()
	retry.PerAttemptTimeout = 200 * ms
	if inPlace {
		retry.OnAttemptTimeout = "RETRY"
	}
	return config(retry)
}

// hangs makes a call whose first attempt hangs, and returns what was decided then.
func (s scene) hangs(t *testing.T) policy.Reason {
	t.Helper()
	s.On(get, testserver.Hang().Times(1), text("quick"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	before := len(s.decisions)
	_, err := s.call(ctx, get)
	reason := s.decisions[before].Reason
	follows := reason == policy.ReasonHedge || reason == policy.ReasonRetry
	if !follows && (status.Code(err) != codes.DeadlineExceeded || reasonOf(err) != reason) || follows && err != nil {
		t.Errorf("decided %s, and the call ended with %v, %s", reason, err, reasonOf(err))
	}
	return reason
}

// What follows a slow attempt depends on the method's last ten answers: nothing while more than two were slow, or too few are known to send
// one beside it; nothing at all while all were very slow. Only answers count.
func TestBesideSlow(t *testing.T) {
	t.Parallel()
	always, often := policy.ReasonSlowEverywhere, policy.ReasonNotProvenFast
	const slow, verySlow = 220 * ms, 300 * ms // over 200 ms, and over a quarter of a second
	fast := repeat(10*ms, 20)
	allVerySlow := append(repeat(slow, 10), repeat(verySlow, 10)...) // after slow ones, which let nothing follow, so that they end
	for inPlace, follows := range map[bool]policy.Reason{false: policy.ReasonHedge, true: policy.ReasonRetry} {
		few := often
		if inPlace {
			few = policy.ReasonRetry
		}
		for name, row := range map[string]struct {
			before func(t *testing.T, s scene)
			want   policy.Reason
		}{
			"no answer":      {func(*testing.T, scene) {}, few},
			"four answers":   {func(t *testing.T, s scene) { s.takes(t, nil, get, repeat(10*ms, 4)...) }, few},
			"five":           {func(t *testing.T, s scene) { s.takes(t, nil, get, repeat(10*ms, 5)...) }, follows},
			"one of four":    {func(t *testing.T, s scene) { s.takes(t, nil, get, append(repeat(10*ms, 3), slow)...) }, often},
			"one of five":    {func(t *testing.T, s scene) { s.takes(t, nil, get, append(repeat(10*ms, 4), slow)...) }, follows},
			"another method": {func(t *testing.T, s scene) { s.takes(t, nil, create, fast...) }, few},
			"five, long ago": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, repeat(10*ms, 5)...)
				time.Sleep(time.Hour)
			}, follows},
			"five errors that speak of the request": {func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.NotFound))
				for range 5 {
					_, _ = s.call(t.Context(), get)
				}
			}, follows},
			"five other errors": {func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Internal))
				for range 5 {
					_, _ = s.call(t.Context(), get)
				}
			}, few},
			"two are slow":          {func(t *testing.T, s scene) { s.takes(t, nil, get, append(fast, repeat(slow, 2)...)...) }, follows},
			"three are slow":        {func(t *testing.T, s scene) { s.takes(t, nil, get, append(fast, repeat(slow, 3)...)...) }, often},
			"three were, and eight": {func(t *testing.T, s scene) { s.takes(t, nil, get, append(repeat(slow, 3), repeat(10*ms, 8)...)...) }, follows},
			"all are slow":          {func(t *testing.T, s scene) { s.takes(t, nil, get, append(fast, repeat(slow, 10)...)...) }, often},
			"all are very slow":     {func(t *testing.T, s scene) { s.takes(t, nil, get, allVerySlow...) }, always},
			"nine are very slow": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, append(slices.Clip(allVerySlow), 10*ms)...)
			}, often},
			"all of another method are very slow": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, fast...)
				s.takes(t, nil, create, repeat(verySlow, 10)...)
			}, follows},
			"after a reload": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, allVerySlow...)
				s.reload(t, watchful(inPlace))
			}, always},
			"over another connection": {func(t *testing.T, s scene) {
				one := s
				one.conn = s.Dial(t, s.retrier.DialOptions()...)
				one.takes(t, nil, get, allVerySlow...)
			}, always},
		} {
			t.Run(string(follows)+"/"+name, func(t *testing.T) {
				fresh(t, watchful(inPlace), func(t *testing.T, s scene) {
					row.before(t, s)
					if got := s.hangs(t); got != row.want {
						t.Errorf("a call that hangs: %s; want %s", got, row.want)
					}
				})
			})
		}
	}
}

// A command-line client makes one call, which hangs: with onAttemptTimeout RETRY, its second attempt is sent in place of the first, as far
// as the bucket pays.
func TestBesideSlow_FirstCall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		inPlace bool
		bucket  float64
		want    policy.Reason
	}{
		"in place":                 {true, 4, policy.ReasonRetry},
		"in place, a small bucket": {true, 3, policy.ReasonBudgetExhausted},
		"beside":                   {false, 4, policy.ReasonNotProvenFast},
	} {
		t.Run(name, func(t *testing.T) {
			c := watchful(row.inPlace)
			b := bucketOf(row.bucket)
			b.Name = "orders"
			c.Budgets = []spec.Budget{b}
			c.Methods[0].Retry.Budget = b.Name
			fresh(t, c, func(t *testing.T, s scene) {
				if got := s.hangs(t); got != row.want {
					t.Errorf("%s; want %s", got, row.want)
				}
			})
		})
	}
}

// Whoever hears of a refusal hears of the answers behind it: the decision, the end of the call, and the error.
func TestBesideSlow_Answers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before []time.Duration
		want   string
	}{
		"too few":         {repeat(10*ms, 3), "3 of the 5 responses that must be known"},
		"too many slow":   {append(repeat(10*ms, 7), repeat(220*ms, 3)...), "3 of the last 10 responses were slow: over 200ms"},
		"all very slow":   {repeat(300*ms, 10), "10 of the last 10 responses were slow: over 250ms"},
		"nothing is slow": {repeat(10*ms, 10), ""},
	} {
		t.Run(name, func(t *testing.T) {
			fresh(t, watchful(false), func(t *testing.T, s scene) {
				s.takes(t, nil, get, row.before...)
				s.On(get, testserver.Hang())
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				decisions, calls := len(s.decisions), len(s.calls)
				_, err := s.call(ctx, get)
				e, _ := errors.AsType[*interceptor.Error](err)
				if row.want == "" {
					decisions++ // the hedge, which the bucket pays for; no other one follows
				}
				got := []string{s.decisions[decisions].Answers.String(), s.calls[calls].Answers.String(), e.Answers.String()}
				for _, text := range got {
					if text != row.want {
						t.Errorf("%q; want %q three times", got, row.want)
					}
				}
				if logged := e.LogValue().String(); row.want != "" && !strings.Contains(logged, "answers="+row.want) {
					t.Errorf("the error is logged as %s; want %q in it", logged, row.want)
				}
			})
		})
	}
}
