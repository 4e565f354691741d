// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// fuse is a circuit breaker that opens after so many failures in a row.
type fuse struct {
	mu       sync.Mutex // guards all
	limit    int
	failures int
	granted  int
	told     []codes.Code // by done
}

type fuseState string

func (s fuseState) String() string { return string(s) }

var errFuse = errors.New("the fuse is blown")

func (f *fuse) Allow() (func(error), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures >= f.limit {
		return nil, errFuse
	}
	f.granted++
	return f.done, nil
}

func (f *fuse) done(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, status.Code(err))
	if f.failures++; err == nil {
		f.failures = 0
	}
}

func (f *fuse) State() fuseState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures >= f.limit {
		return "open"
	}
	return "closed"
}

// blow opens the circuit.
func (f *fuse) blow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = f.limit
}

func (f *fuse) String() string { return fmt.Sprint(f.granted, f.told) }

func withFuse(f *fuse) interceptor.Option {
	return interceptor.WithBreaker(func(string, string) interceptor.Breaker[fuseState] { return f })
}

func TestABreakerIsAskedBeforeEveryAttemptAndToldHowEachEnds(t *testing.T) {
	f := &fuse{limit: 10}
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(2), text("third"))
		if got, err := s.call(t.Context(), get); got != "third" || err != nil || f.String() != "3 [Unavailable Unavailable OK]" {
			t.Errorf("%q, %v, %v", got, err, f)
		}
	}, withFuse(f))
}

func TestAnOpenCircuitRefusesTheFirstAttempt(t *testing.T) {
	f, budget := &fuse{}, &purse{}
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, text("never"))
		finished := 0
		_, err := s.call(t.Context(), get, grpc.OnFinish(func(error) { finished++ }))
		if status.Code(err) != codes.Unavailable || !errors.Is(err, errFuse) || reasonOf(err) != policy.ReasonBreakerOpen {
			t.Errorf("%v (%s); want UNAVAILABLE, with the breaker's error", err, reasonOf(err))
		}
		if e, _ := errors.AsType[*interceptor.Error](err); e == nil || e.Attempts != 0 {
			t.Errorf("%+v; want no attempt", e)
		}
		if s.Count(get) != 0 || finished != 1 || len(s.calls) != 1 || len(s.attempts) != 0 || budget.started+budget.ok+budget.bad != 0 {
			t.Errorf("%d requests, finished %d times, %d calls and %d attempts told of, the budget %d times",
				s.Count(get), finished, len(s.calls), len(s.attempts), budget.started+budget.ok+budget.bad)
		}
	}, withFuse(f), interceptor.WithBudget("", budget))
}

func TestACircuitThatAFailureOpensIsNotWaitedFor(t *testing.T) {
	f := &fuse{limit: 2}
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "restarting"))
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if !errors.Is(err, status.Error(codes.Unavailable, "restarting")) || reasonOf(err) != policy.ReasonBreakerOpen || errors.Is(err, errFuse) {
			t.Errorf("%v (%s); want the server's error", err, reasonOf(err))
		}
		if s.Count(get) != 2 || time.Since(began) != 100*ms {
			t.Errorf("%d attempts in %v; want 2, and no wait after the second", s.Count(get), time.Since(began))
		}
	}, withFuse(f))
}

func TestACircuitThatOpensDuringTheWaitIsNotRetriedInto(t *testing.T) {
	f, budget := &fuse{limit: 5}, &purse{grants: 9}
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, down())
		time.AfterFunc(50*ms, f.blow)
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonBreakerOpen || s.Count(get) != 1 || budget.returned != 1 || s.retrier.Waiting() != 0 {
			t.Errorf("%v (%s) after %d attempts; %v; %d wait", err, reasonOf(err), s.Count(get), budget, s.retrier.Waiting())
		}
	}, withFuse(f), interceptor.WithBudget("", budget))
}
