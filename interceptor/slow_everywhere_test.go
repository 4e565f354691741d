// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// watchful sends an attempt in parallel with a slow one, or instead of it, after 200 ms and a backoff of 100 ms.
func watchful(inPlace bool) policy.Config {
	retry := plain()
	retry.PerAttemptTimeout, retry.CancelOnTimeout = 200*ms, inPlace
	return config(retry)
}

// answers makes a call with a second that is answered by a step.
func (s scene) answers(t *testing.T, method string, step testserver.Step) {
	t.Helper()
	s.On(method, step)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	must.Get(s.call(ctx, method))(t)
}

// answersLate makes a call that is answered fast, and one that is answered after its timeout, before another attempt is sent.
func (s scene) answersLate(t *testing.T, method string) {
	t.Helper()
	s.answers(t, method, text("").Delay(10*ms))
	s.answers(t, method, text("slow").Delay(250*ms))
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
	if reason == policy.ReasonSlowEverywhere && (status.Code(err) != codes.DeadlineExceeded || reasonOf(err) != reason) {
		t.Errorf("decided %s, and the call ended with %v, %s", reason, err, reasonOf(err))
	}
	return reason
}

func TestSlowEverywhere(t *testing.T) {
	t.Parallel()
	slow := policy.ReasonSlowEverywhere
	for inPlace, follows := range map[bool]policy.Reason{false: policy.ReasonHedge, true: policy.ReasonRetry} {
		for name, row := range map[string]struct {
			before func(t *testing.T, s scene)
			want   policy.Reason
		}{
			"nothing was answered": {func(*testing.T, scene) {}, follows},
			"slow":                 {func(t *testing.T, s scene) { s.answersLate(t, get) }, slow},
			"slow, long ago":       {func(t *testing.T, s scene) { s.answersLate(t, get); time.Sleep(time.Second) }, follows},
			"another method":       {func(t *testing.T, s scene) { s.answersLate(t, create) }, slow},
			"reload":               {func(t *testing.T, s scene) { s.answersLate(t, get); s.reload(t, watchful(inPlace)) }, slow},
			"another connection": {func(t *testing.T, s scene) {
				one := s
				one.conn = s.Dial(t, s.retrier.DialOptions()...)
				one.answersLate(t, get)
			}, slow},
		} {
			t.Run(string(follows)+"/"+name, func(t *testing.T) {
				play(t, watchful(inPlace), func(t *testing.T, s scene) {
					row.before(t, s)
					if got := s.hangs(t); got != row.want {
						t.Errorf("a call that hangs: %s; want %s", got, row.want)
					}
				})
			})
		}
	}
}

// A long response keeps the reserve from paying for a retry. After three idle seconds and one fast response it pays again.
func TestReserve_AfterIdleSeconds(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		fails := func() error {
			s.On(get, down().Times(1), text("retried"))
			_, err := s.call(t.Context(), get)
			return err
		}
		s.answersLate(t, get)
		if err := fails(); reasonOf(err) != policy.ReasonBudgetExhausted {
			t.Errorf("after a long response: %v (%s)", err, reasonOf(err))
		}
		time.Sleep(3 * time.Second)
		s.answers(t, get, text("").Delay(10*ms))
		if err := fails(); err != nil {
			t.Errorf("after idle seconds and a fast response: %v (%s)", err, reasonOf(err))
		}
	})
}
