// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestWaitLimit(t *testing.T) {
	purse := &purse{grants: 1 << 30}
	retry := plain()
	retry.Budget, retry.MaxAttempts = "", 2
	play(t, waiting(config(retry), 6), func(t *testing.T, s scene) {
		s.On(get, down())
		var (
			wg      sync.WaitGroup
			refused atomic.Int64
		)
		for range 10 {
			wg.Go(func() {
				began := time.Now()
				_, err := s.call(t.Context(), get)
				if reasonOf(err) != policy.ReasonTooManyWaiting {
					return
				}
				refused.Add(1)
				if status.Code(err) != codes.Unavailable || time.Since(began) != 0 {
					t.Errorf("%v after %v; want the server's error at once", err, time.Since(began))
				}
			})
		}
		synctest.Wait()
		if got := s.retrier.State().Waiting; got != 3 {
			t.Errorf("%d calls wait; want 3", got)
		}
		wg.Wait()
		if refused.Load() != 7 || s.retrier.State().Waiting != 0 || len(purse.asked) != 3 {
			t.Errorf("%d refused, %d wait, %d permits asked for; want 7, 0 and 3", refused.Load(), s.retrier.State().Waiting, len(purse.asked))
		}
	}, interceptor.WithBudget("", purse))
}

func TestWaitLimit_Reload(t *testing.T) {
	c := config(plain())
	c.MaxWaiting = 1
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, down())
		go func() { _, _ = s.call(t.Context(), get) }()
		synctest.Wait()
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonTooManyWaiting {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
		c.MaxWaiting = 4
		s.reload(t, c)
		go func() { _, _ = s.call(t.Context(), get) }()
		synctest.Wait()
		if got := s.retrier.State().Waiting; got != 2 {
			t.Errorf("%d calls wait after a reload; want 2", got)
		}
		time.Sleep(time.Minute)
	})
}

func TestWaitLimit_SlotsComeBack(t *testing.T) {
	for name, end := range map[string]func(s scene, cancel func()){
		"it is over":                func(scene, func()) { time.Sleep(time.Minute) },
		"the caller cancels":        func(_ scene, cancel func()) { cancel() },
		"the connection is closed":  func(s scene, _ func()) { _ = s.conn.Close() },
		"beside a slow attempt too": func(_ scene, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(besides()), func(t *testing.T, s scene) {
				s.On(get, down())
				if name == "beside a slow attempt too" {
					s.On(get, text("late").Delay(time.Hour))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour/2)
				defer cancel()
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = s.call(ctx, get)
				}()
				synctest.Wait()
				if name == "beside a slow attempt too" {
					time.Sleep(1050 * ms)
				}
				if got := s.retrier.State().Waiting; got != 1 {
					t.Errorf("%d calls wait; want 1", got)
				}
				end(s, cancel)
				<-done
				if got := s.retrier.State().Waiting; got != 0 {
					t.Errorf("%d calls wait; want none", got)
				}
			})
		})
	}
}

func TestWaitLimit_Outage(t *testing.T) {
	retry := plain()
	retry.Backoff.Initial, retry.MaxAttempts = 10*time.Second, 3
	play(t, waiting(config(retry), 100), func(t *testing.T, s scene) {
		s.Down()
		var wg sync.WaitGroup
		most := 0
		for range 10_000 {
			wg.Go(func() { _, _ = s.call(t.Context(), get) })
			most = max(most, s.retrier.State().Waiting)
		}
		synctest.Wait()
		if most = max(most, s.retrier.State().Waiting); most > 100 {
			t.Errorf("%d calls wait; want at most 100", most)
		}
		wg.Wait()
	})
}

// The server fails, hangs, or answers late; every call is cancelled at another time, some of them while they
// wait, and no more than 50 may.
func TestWaitLimit_NothingLost(t *testing.T) {
	for name, c := range map[string]policy.Config{"retries": config(plain()), "hedges": hedged(), "beside": config(besides())} {
		paid(c)
		t.Run(name, func(t *testing.T) {
			f, b := &fuse{limit: 1 << 30}, &till{purse: &purse{grants: 1 << 30}}
			play(t, waiting(c, 50), func(t *testing.T, s scene) {
				s.On(get, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
					switch a.Number % 3 {
					case 0:
						return text("late").Delay(1150 * ms)
					case 1:
						return testserver.Hang()
					default:
						return down()
					}
				}))
				var wg sync.WaitGroup
				for i := range 500 {
					wg.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						defer time.AfterFunc(time.Duration(1+i)*5*ms, cancel).Stop()
						_, _ = s.call(ctx, get)
					})
				}
				wg.Wait()
				synctest.Wait()
				if left := held(s.retrier, f, b); left != "" {
					t.Errorf("held for ever: %s", left)
				}
				refused := slices.ContainsFunc(s.calls, func(e interceptor.Event) bool { return e.Reason == policy.ReasonTooManyWaiting })
				if len(b.asked) == 0 || b.ok == 0 || refused == (name == "hedges") { // those do not wait
					t.Errorf("%d permits asked for, %d calls succeed, some refused: %v", len(b.asked), b.ok, refused)
				}
			}, withFuse(f), interceptor.WithBudget("", b))
		})
	}
}

func TestWaitLimit_RunningTakesNone(t *testing.T) {
	for name, c := range map[string]policy.Config{"retries": config(plain()), "beside": config(besides())} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, down(), testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
					if got := s.retrier.State().Waiting; got != 0 {
						t.Errorf("%d calls wait during the second attempt; want none", got)
					}
					return text("second")
				}))
				if got, err := s.call(t.Context(), get); got != "second" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		})
	}
}
