// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
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
	var once sync.Once
	return func(err error) {
		once.Do(func() { f.done(err) })
	}, nil
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
		if status.Code(err) != codes.Unavailable || !errors.Is(err, errFuse) || reasonOf(err) != policy.BreakerOpen {
			t.Errorf("%v (%s); want UNAVAILABLE, with the breaker's error", err, reasonOf(err))
		}
		if e, _ := errors.AsType[*interceptor.Error](err); e == nil || e.Attempts != 0 {
			t.Errorf("%+v; want no attempt", e)
		}
		if s.Count(get) != 0 || finished != 1 || len(s.calls) != 1 || len(s.attempts) != 0 || budget.started != 0 {
			t.Errorf("%d requests, finished %d times, %d calls and %d attempts told of, %d budgeted",
				s.Count(get), finished, len(s.calls), len(s.attempts), budget.started)
		}
		for _, desc := range []*grpc.StreamDesc{serverStream, bidiStream} {
			if _, err := s.conn.NewStream(t.Context(), desc, get); !errors.Is(err, errFuse) || reasonOf(err) != policy.BreakerOpen {
				t.Errorf("stream: %v (%s)", err, reasonOf(err))
			}
		}
	}, withFuse(f), interceptor.WithBudget("", budget))
}

func TestACircuitThatAFailureOpensIsNotWaitedFor(t *testing.T) {
	f := &fuse{limit: 2}
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if status.Convert(err).Message() != "down" && status.Code(err) != codes.Unavailable || reasonOf(err) != policy.BreakerOpen ||
			errors.Is(err, errFuse) {
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
		if reasonOf(err) != policy.BreakerOpen || s.Count(get) != 1 || budget.returned != 1 || s.retrier.Waiting() != 0 {
			t.Errorf("%v (%s) after %d attempts; %v; %d wait", err, reasonOf(err), s.Count(get), budget, s.retrier.Waiting())
		}
	}, withFuse(f), interceptor.WithBudget("", budget))
}

func TestABreakerIsToldOfAttemptsThatTimeOutOrAreCancelled(t *testing.T) {
	inPlace, beside := besides(), besides()
	inPlace.OnAttemptTimeout = policy.InPlace
	for name, row := range map[string]struct {
		c    policy.Config
		want string
	}{
		"given up":      {config(inPlace), "[DeadlineExceeded OK]"},
		"beside":        {config(beside), "[OK DeadlineExceeded]"}, // and cancelled in the end
		"a lost hedge":  {hedged(), "[OK OK]"},                     // it was not slow
		"sequential":    {config(plain()), "[Canceled]"},
		"no other hope": {policy.Config{}, "[Canceled]"},
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

func TestABreakerHearsOfStreamsToo(t *testing.T) {
	f := &fuse{limit: 10}
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a", "b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if got, err := receive(stream); fmt.Sprint(got) != "[a b]" || err != io.EOF || f.String() != "2 [Unavailable OK]" { //nolint:errorlint // as gRPC has it
			t.Errorf("%v, %v, %v", got, err, f)
		}
	}, withFuse(f))
}

func TestAPanicIsNoLossToABreaker(t *testing.T) {
	f := &fuse{limit: 10}
	unary := mustNew(t, mustSet(t, config(plain())), quiet, withFuse(f)).Unary()
	func() {
		defer func() { _ = recover() }()
		_ = unary(t.Context(), get, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			panic("in an interceptor further in")
		})
	}()
	if f.String() != "1 [Unknown]" {
		t.Error(f)
	}
}

func TestMethodsWithoutABreakerNeedNone(t *testing.T) {
	asked := make(chan string, 10)
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("fine"))
		if got, err := s.call(t.Context(), get); got != "fine" || err != nil || len(asked) != 1 {
			t.Errorf("%q, %v; asked %d times", got, err, len(asked))
		}
		if at := <-asked; at != s.conn.Target()+get {
			t.Errorf("asked for %s", at)
		}
	}, interceptor.WithBreaker(func(target, method string) interceptor.Breaker[fuseState] {
		asked <- target + method
		return nil
	}))
}

func TestABreakerIsToldOnceOfEveryAttemptOfManyCalls(t *testing.T) {
	f := &fuse{limit: 1 << 30}
	play(t, hedged(func(h *policy.HedgeSpec) { h.Delay = 2 * ms }), func(t *testing.T, s scene) {
		s.On(get, text("slow").Delay(3*ms), text("quick"), down())
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 20 {
					_, _ = s.call(t.Context(), get)
				}
			})
		}
		wg.Wait()
		if f.granted != len(f.told) || f.granted < 64*20 || !slices.Contains(f.told, codes.OK) {
			t.Errorf("granted %d, told of %d", f.granted, len(f.told))
		}
	}, withFuse(f))
}
