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

// A call that is connected again, while all attempts fail, waits for an answer, and ends when its wait for the connection would have.
func TestOutageWait_StateReconnected(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		s.On(get, testserver.OK())
		s.Down()
		var calls sync.WaitGroup
		calls.Go(func() {
			began := time.Now()
			_, err := s.call(t.Context(), get)
			if took := time.Since(began); reasonOf(err) != policy.ReasonFailingEverywhere || took != 3*time.Second {
				t.Errorf("%v (%s) after %v; want failing_everywhere after 3 s", err, reasonOf(err), took)
			}
		})
		time.Sleep(500 * ms)
		if got, want := s.retrier.State().Waiting, (interceptor.Waiting{Connection: 1}); got != want {
			t.Errorf("without a connection: %+v wait; want %+v", got, want)
		}
		s.Up()
		time.Sleep(2 * time.Second)
		if got, want := s.retrier.State().Waiting, (interceptor.Waiting{Answer: 1}); got != want {
			t.Errorf("connected again: %+v wait; want %+v", got, want)
		}
		calls.Wait()
	}, interceptor.WithBudget("", forAll(laterBudget{})))
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

// neverBudget is a budget of a program that pays for nothing, whatever the cause.
type neverBudget struct{}

func (neverBudget) Observe(time.Time, budget.Event) {}

func (neverBudget) Allow(time.Time, budget.Cause) (budget.Answer, func(time.Time, budget.End)) {
	return budget.No, nil
}

// What never left the client is free: a budget that pays for nothing neither holds it up nor counts it.
func TestOutageWait_UnsentIsFree(t *testing.T) {
	play(t, everywhere(), func(t *testing.T, s scene) {
		s.On(get, testserver.OK())
		s.Down()
		time.AfterFunc(time.Second, s.Up)
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if took := time.Since(began); err != nil || took > 1600*ms {
			t.Errorf("%v after %v; want a success within 1.6 s", err, took)
		}
		if is := inUse(s.retrier)[0]; is.Granted != 0 || is.Refused != 0 {
			t.Errorf("%d granted, %d refused; want none", is.Granted, is.Refused)
		}
		s.On(get, down(), testserver.OK()) // this one was sent
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonBudgetExhausted {
			t.Errorf("%v (%s); want budget_exhausted", err, reasonOf(err))
		}
	}, interceptor.WithBudget("", forAll(neverBudget{})))
}

// patientBudget is a budget of a program that says Later until some time, and then its last word.
type patientBudget struct {
	until time.Time
	then  budget.Answer

	mu    sync.Mutex // guards asked
	asked []budget.Cause
}

func (*patientBudget) Observe(time.Time, budget.Event) {}

func (b *patientBudget) Allow(now time.Time, c budget.Cause) (budget.Answer, func(time.Time, budget.End)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, c)
	if now.Before(b.until) {
		return budget.Later, nil
	}
	return b.then, nil
}

// A budget of a program may say Later: the call asks again after each backoff, and obeys the answer.
func TestOutageWait_OwnBudget(t *testing.T) {
	for name, row := range map[string]struct {
		then   budget.Answer
		reason policy.Reason // "": success
	}{"then yes": {budget.Yes, ""}, "then no": {budget.No, policy.ReasonBudgetExhausted}} {
		t.Run(name, func(t *testing.T) {
			b := &patientBudget{then: row.then}
			play(t, everywhere(), func(t *testing.T, s scene) {
				b.until = time.Now().Add(time.Second)
				s.On(get, down(), testserver.OK())
				began := time.Now()
				_, err := s.call(t.Context(), get)
				if took := time.Since(began); reasonOf(err) != row.reason || took < time.Second || took > 2*time.Second {
					t.Errorf("%v (%s) after %v; want %q after a second", err, reasonOf(err), took, row.reason)
				}
				if len(b.asked) < 3 || b.asked[0] != budget.CauseFailure || b.asked[1] != budget.CauseWaited {
					t.Errorf("asked with causes %v; want a failure, and then waits", b.asked)
				}
			}, interceptor.WithBudget("", forAll(b)))
		})
	}
}
