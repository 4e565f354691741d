// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/spec"
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

// Nothing is sent beside a slow attempt, nor in its place, unless it is known what is usual for its method, and no response of the
// target was long. The reason says which: a queue only when all were long.
func TestBesideSlow(t *testing.T) {
	t.Parallel()
	queue, unknown := policy.ReasonSlowEverywhere, policy.ReasonNotProvenFast
	fast := repeat(10*ms, 20)
	for inPlace, follows := range map[bool]policy.Reason{false: policy.ReasonHedge, true: policy.ReasonRetry} {
		for name, row := range map[string]struct {
			before func(t *testing.T, s scene)
			want   policy.Reason
		}{
			"no response":     {func(*testing.T, scene) {}, unknown},
			"seven responses": {func(t *testing.T, s scene) { s.takes(t, nil, get, repeat(10*ms, 7)...) }, unknown},
			"eight":           {func(t *testing.T, s scene) { s.takes(t, nil, get, repeat(10*ms, 8)...) }, follows},
			"another method":  {func(t *testing.T, s scene) { s.takes(t, nil, create, fast...) }, unknown},
			"eight, long ago": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, repeat(10*ms, 8)...)
				time.Sleep(time.Hour)
			}, follows},
			"eight failures": {func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.NotFound))
				for range 8 {
					_, _ = s.call(t.Context(), get)
				}
			}, unknown},
			"one is long": {func(t *testing.T, s scene) { s.takes(t, nil, get, append(fast, 250*ms)...) }, unknown},
			"one was long 10 s ago": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, append(fast, 250*ms)...)
				time.Sleep(10*time.Second - 200*ms + 1)
			}, follows},
			"all are long": {func(t *testing.T, s scene) { s.takes(t, nil, get, append(fast, repeat(250*ms, 5)...)...) }, queue},
			"one of another method is long": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, fast...)
				s.takes(t, nil, create, append(fast, 250*ms)...)
			}, unknown},
			"after a reload": {func(t *testing.T, s scene) {
				s.takes(t, nil, get, append(fast, repeat(250*ms, 5)...)...)
				s.reload(t, watchful(inPlace))
			}, queue},
			"over another connection": {func(t *testing.T, s scene) {
				one := s
				one.conn = s.Dial(t, s.retrier.DialOptions()...)
				one.takes(t, nil, get, append(fast, repeat(250*ms, 5)...)...)
			}, queue},
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
