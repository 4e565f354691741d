// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
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
		if got := s.retrier.State().Waiting.All(); got != 3 {
			t.Errorf("%d calls wait; want 3", got)
		}
		wg.Wait()
		if refused.Load() != 7 || s.retrier.State().Waiting.All() != 0 || len(purse.asked) != 3 {
			t.Errorf("%d refused, %d wait, %d permits asked for; want 7, 0 and 3", refused.Load(), s.retrier.State().Waiting.All(), len(purse.asked))
		}
	}, interceptor.WithBudget("", forAll(purse)))
}

func TestWaitLimit_Reload(t *testing.T) {
	c := waiting(config(plain()), 1)
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
		if got := s.retrier.State().Waiting.All(); got != 2 {
			t.Errorf("%d calls wait after a reload; want 2", got)
		}
		time.Sleep(time.Minute)
	})
}
