// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// fuse is a circuit breaker that opens after a number of consecutive failures.
type fuse struct {
	mu       sync.Mutex // guards all
	limit    int
	failures int
	granted  int
	told     []codes.Code // by done
}

var errFuse = errors.New("the fuse is blown")

func (f *fuse) Allow(context.Context, int) (func(error), error) {
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
	f.failures++
	if err == nil {
		f.failures = 0
	}
}

func (f *fuse) Open(context.Context, int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures >= f.limit {
		return errFuse
	}
	return nil
}

func (f *fuse) String() string { return fmt.Sprint(f.granted, f.told) }

func withFuse(f *fuse) interceptor.Option {
	return interceptor.WithBreaker(func(string, string) interceptor.Gate { return f })
}

func TestBreaker_AskedAndTold(t *testing.T) {
	for kind, desc := range callKinds {
		t.Run(kind, func(t *testing.T) {
			f := &fuse{limit: 10}
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down().Times(2), text("third"))
				if err := exchange(t.Context(), s.conn, desc, get); err != nil || f.String() != "3 [Unavailable Unavailable OK]" {
					t.Errorf("%v, %v", err, f)
				}
			}, withFuse(f))
		})
	}
}

// A stream is refused when it is opened.
func TestBreaker_RefusesFirst(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	for kind, desc := range callKinds {
		t.Run(kind, func(t *testing.T) {
			budget := new(purse)
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, text("never"))
				finished := 0
				var err error
				if count := grpc.OnFinish(func(error) { finished++ }); desc == nil {
					_, err = s.call(t.Context(), get, count)
				} else {
					_, err = s.conn.NewStream(t.Context(), desc, get, count)
				}
				e, _ := errors.AsType[*interceptor.Error](err)
				if status.Code(err) != codes.Unavailable || !errors.Is(err, errFuse) || e == nil || e.Reason != policy.ReasonBreakerOpen || e.Attempts != 0 {
					t.Errorf("%+v; want UNAVAILABLE, with the breaker's error, after no attempt", err)
				}
				if s.Count(get) != 0 || finished != 1 || len(s.calls) != 1 || s.calls[0].Attempts != 0 || len(s.attempts) != 0 ||
					budget.ok+budget.bad != 0 {
					t.Errorf("%d requests, finished %d times, calls %+v and %d attempts told of, the budget %d times",
						s.Count(get), finished, s.calls, len(s.attempts), budget.ok+budget.bad)
				}
			}, withFuse(new(fuse)), interceptor.WithBudget("", forAll(budget)))
		})
	}
}

func TestBreaker_ToldOfLosers(t *testing.T) {
	inPlace, beside := besides(), besides()
	inPlace.OnAttemptTimeout = "RETRY"
	for name, row := range map[string]struct {
		c    spec.Config
		want string
	}{
		"given up":      {config(inPlace), "[DeadlineExceeded OK]"},
		"beside":        {config(beside), "[OK DeadlineExceeded]"}, // and cancelled in the end
		"a lost hedge":  {hedged(), "[OK OK]"},                     // it was not slow
		"sequential":    {config(plain()), "[Canceled]"},
		"no other hope": {spec.Config{}, "[Canceled]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fuse{limit: 10}
			play(t, row.c, func(t *testing.T, s scene) {
				s.On(get, testserver.Hang(), text("second"))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				time.AfterFunc(5*time.Second, cancel)
				_, _ = s.call(ctx, get)
				synctest.Wait()
				if got := fmt.Sprint(f.told); got != row.want || f.granted != len(f.told) {
					t.Errorf("granted %d, told %s; want %s", f.granted, got, row.want)
				}
			}, withFuse(f))
		})
	}
}

func TestBreaker_None(t *testing.T) {
	asked := make(chan string, 10)
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("fine"))
		if got, err := s.call(t.Context(), get); got != "fine" || err != nil || len(asked) != 1 {
			t.Errorf("%q, %v; asked %d times", got, err, len(asked))
		}
		if at := <-asked; at != s.conn.Target()+get {
			t.Errorf("asked for %s", at)
		}
	}, interceptor.WithBreaker(func(target, method string) interceptor.Gate {
		asked <- target + method
		return nil
	}))
}

// looks is a gate that records what it is asked.
type looks struct {
	asked []string
	left  []time.Duration // until the deadline
}

func (l *looks) look(what string, ctx context.Context, attempt int) {
	deadline, _ := ctx.Deadline()
	l.asked = append(l.asked, fmt.Sprint(what, attempt))
	l.left = append(l.left, time.Until(deadline))
}

func (l *looks) Open(ctx context.Context, attempt int) error {
	l.look("open", ctx, attempt)
	return nil
}

func (l *looks) Allow(ctx context.Context, attempt int) (func(error), error) {
	l.look("allow", ctx, attempt)
	return func(error) {}, nil
}

// A gate is told which attempt it is asked for, and has the call's context with the deadline of the policy.
func TestBreaker_AttemptAndDeadline(t *testing.T) {
	for kind, desc := range callKinds {
		t.Run(kind, func(t *testing.T) {
			of, c := new(looks), config(plain())
			c.Methods[0].Timeout = time.Minute
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, down().Times(2), text("third"))
				if err := exchange(t.Context(), s.conn, desc, get); err != nil {
					t.Fatal(err)
				}
				waited := time.Minute - of.left[len(of.left)-1]
				if got := fmt.Sprint(of.asked); got != "[allow1 open2 allow2 open3 allow3]" || of.left[0] != time.Minute || waited <= 0 {
					t.Errorf("asked %s, with %v left", got, of.left)
				}
			}, interceptor.WithBreaker(func(string, string) interceptor.Gate { return of }))
		})
	}
}
