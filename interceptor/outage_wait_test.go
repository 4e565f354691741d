// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// laterBudget is a budget for which everything fails.
type laterBudget struct{}

func (laterBudget) Observe(time.Time, budget.Event) {}

func (laterBudget) Allow(time.Time, budget.Cause) (budget.Answer, func(time.Time, budget.End)) {
	return budget.Later, nil
}

// everywhere is the policy of plain with the default budget.
func everywhere() spec.Config {
	retry := plain()
	retry.Budget = ""
	return config(retry)
}

// All calls of an outage of 1 s succeed, with few requests.
func TestOutageWait_AllFailForASecond(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		s.On(get, down())
		time.AfterFunc(time.Second, func() { s.On(get, testserver.OK()) })
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if _, err := s.call(ctx, get); err != nil {
					t.Errorf("%v (%s)", err, reasonOf(err))
				}
			})
			time.Sleep(20 * ms)
		}
		calls.Wait()
		if got := s.retrier.State().Waiting.All(); got != 0 {
			t.Errorf("%d calls wait still", got)
		}
	})
}

// The State says what waiting calls wait for.
func TestOutageWait_State(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		s.On(get, down())
		wants := func(when string, want interceptor.Waiting) {
			t.Helper()
			synctest.Wait()
			if got := s.retrier.State().Waiting; got != want {
				t.Errorf("%s: %+v wait; want %+v", when, got, want)
			}
		}
		for range 5 {
			_, err := s.call(t.Context(), get, interceptor.MaxAttempts(1))
			if err == nil {
				t.Fatal("a call succeeds")
			}
		}
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = s.call(t.Context(), get) })
		wants("all fail", interceptor.Waiting{Answer: 1})
		s.Down()
		time.Sleep(time.Second)
		wants("the server is away", interceptor.Waiting{Connection: 1})
		s.Up()
		s.On(get, testserver.OK())
		calls.Wait()
		wants("the server is back", interceptor.Waiting{})
		s.On(get, down(), testserver.OK())
		calls.Go(func() { _, _ = s.call(t.Context(), get) })
		wants("after a failure", interceptor.Waiting{Backoff: 1})
		calls.Wait()
	})
}

// A wait in vain ends after maxConnectionWait, or before the deadline, with the server's own error. These calls don't wait.
func TestOutageWait_InVain(t *testing.T) {
	none := 0 * ms
	for name, row := range map[string]struct {
		deadline time.Duration
		options  []grpc.CallOption
		most     time.Duration
		least    time.Duration
	}{
		"for the longest wait":      {time.Minute, nil, 3 * time.Second, 3 * time.Second},
		"until the deadline":        {time.Second, nil, time.Second - 1, 500 * ms},
		"optional":                  {time.Minute, []grpc.CallOption{interceptor.Optional()}, none, none},
		"without waiting for ready": {time.Minute, []grpc.CallOption{grpc.WaitForReady(false)}, none, none},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, everywhere(), func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Unavailable))
				ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
				defer cancel()
				began := time.Now()
				_, err := s.call(ctx, get, row.options...)
				took := time.Since(began)
				if took < row.least || took > row.most || reasonOf(err) != policy.ReasonFailingEverywhere || status.Code(err) != codes.Unavailable {
					t.Errorf("%v (%s) after %v; want failing_everywhere after %v to %v", err, reasonOf(err), took, row.least, row.most)
				}
				if d, end := s.decisions[0], s.calls[0]; d.ForAnswer != (row.least > 0) || end.ForAnswer != d.ForAnswer {
					t.Errorf("it waits for an answer: %v, has waited: %v", d.ForAnswer, end.ForAnswer)
				}
				if got := s.Count(get); got != 1 {
					t.Errorf("%d attempts; want one", got)
				}
			}, interceptor.WithBudget("", forAll(laterBudget{})))
		})
	}
}

// In an outage of more than 5 s, calls fail at once.
func TestOutageWait_OldOutage(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable))
		_, _ = s.call(t.Context(), get) // waits for 3 s
		time.Sleep(3 * time.Second)
		began := time.Now()
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonFailingEverywhere || time.Since(began) > 0 {
			t.Errorf("%v (%s) after %v; want failing_everywhere at once", err, reasonOf(err), time.Since(began))
		}
	}, interceptor.WithBudget("", forAll(laterBudget{})))
}

// A call that is cancelled, whose mode changes or whose Retrier is closed waits no longer, and holds nothing.
func TestOutageWait_Ends(t *testing.T) {
	for name, row := range map[string]struct {
		end    func(s scene, cancel func())
		reason policy.Reason
	}{
		"cancel":   {func(_ scene, cancel func()) { cancel() }, policy.ReasonCancelled},
		"mode OFF": {func(s scene, _ func()) { _ = s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}) }, policy.ReasonModeOff},
		"Close":    {func(s scene, _ func()) { s.retrier.Close() }, policy.ReasonClosed},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, everywhere(), func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Unavailable))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				time.AfterFunc(time.Second, func() { row.end(s, cancel) })
				_, err := s.call(ctx, get)
				if took := time.Since(began); took != time.Second || reasonOf(err) != row.reason {
					t.Errorf("%v (%s) after %v; want %s after 1 s", err, reasonOf(err), took, row.reason)
				}
				if got := s.retrier.State().Waiting.All(); got != 0 {
					t.Errorf("%d calls wait still", got)
				}
			}, interceptor.WithBudget("", forAll(laterBudget{})))
		})
	}
}
