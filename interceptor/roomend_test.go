// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// The server fails, hangs, or answers late; every call is cancelled at another time, some of them while they
// wait, and no more than 50 may.
func TestNoPermitAndNoPlaceIsLostInAnOutage(t *testing.T) {
	for name, c := range map[string]policy.Config{"retries": config(plain()), "hedges": hedged(), "beside": config(besides())} {
		paid(c)
		t.Run(name, func(t *testing.T) {
			f, b := &fuse{limit: 1 << 30}, &till{purse: &purse{Budget: budget.Unlimited, grants: 1 << 30}}
			play(t, c, func(t *testing.T, s scene) {
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
						defer time.AfterFunc(time.Duration(i)*5*ms, cancel).Stop()
						_, _ = s.call(ctx, get)
					})
				}
				wg.Wait()
				synctest.Wait()
				if left := held(s.retrier, f, b); left != "" {
					t.Errorf("held for ever: %s", left)
				}
				refused := slices.ContainsFunc(s.calls, func(e interceptor.CallEvent) bool { return e.Reason == policy.ReasonTooManyWaiting })
				if len(b.asked) == 0 || b.ok == 0 || refused == (name == "hedges") { // those do not wait
					t.Errorf("%d permits asked for, %d calls succeed, some refused: %v", len(b.asked), b.ok, refused)
				}
			}, withFuse(f), interceptor.WithBudget("", b), interceptor.WithMaxWaiting(50))
		})
	}
}

func TestACallThatIsBeingMadeAgainTakesNoPlace(t *testing.T) {
	for name, c := range map[string]policy.Config{"retries": config(plain()), "beside": config(besides())} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, down(), testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
					if got := s.retrier.Waiting(); got != 0 {
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
