// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// distant is a fleet that answers after a time, with up to so many tokens in all.
type distant struct {
	after  time.Duration
	meddle func(from string)

	mu    sync.Mutex // guards all below
	left  int64
	asked int64 // in millionths
	drawn []string
}

func (d *distant) Draw(ctx context.Context, r budget.PoolRequest) (tokens int64, clients float64, err error) {
	if d.meddle != nil {
		d.meddle("Fleet.Draw")
	}
	select {
	case <-time.After(d.after):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked += r.Tokens
	d.drawn = append(d.drawn, fmt.Sprint(r.Pool, " ", r.PerSecond))
	tokens = min(r.Tokens, d.left*1e6)
	d.left -= tokens / 1e6
	return tokens, 0, nil
}

// pooled is a policy whose budget has no reserve but the pool's, and waits of a second.
func pooled() policy.Config {
	retry := plain()
	retry.Backoff = policy.Backoff{Initial: time.Second, Max: time.Second, Multiplier: 1, Jitter: policy.JitterNone}
	retry.Budget = "orders"
	c := config(retry)
	ratio := budget.DefaultRatio()
	ratio.MinPerSecond, ratio.Fleet = 100, "orders"
	c.Budgets = []policy.BudgetSpec{{Name: "orders", Config: ratio}}
	return c
}

// A call waits for its backoff and never for the pool: what has not been granted by then is refused.
func TestWithFleet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after    time.Duration
		left     int64
		attempts int
		want     codes.Code
		took     time.Duration
	}{
		"granted in the backoff": {10 * time.Millisecond, 5, 2, codes.OK, time.Second},
		"the pool is empty":      {10 * time.Millisecond, 0, 1, codes.Unavailable, time.Second},
		"the answer is late":     {2 * time.Second, 5, 1, codes.Unavailable, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet := &distant{after: tc.after, left: tc.left}
				retrier := mustNew(t, mustSet(t, pooled()), interceptor.WithFleet(fleet))
				s := testserver.Start(t)
				conn := s.Dial(t, retrier.DialOptions()...)
				time.Sleep(5 * time.Second) // the first report is answered
				s.On(get, down().Times(1), testserver.OK())
				began := time.Now()
				err := conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{})
				if status.Code(err) != tc.want || s.Count(get) != tc.attempts || time.Since(began) != tc.took {
					t.Errorf("%+v after %d attempts and %v; want %v, %d, %v", err, s.Count(get), time.Since(began), tc.want, tc.attempts, tc.took)
				}
				if tc.want != codes.OK {
					if e, _ := errors.AsType[*interceptor.Error](err); e == nil || e.Reason != policy.ReasonBudgetExhausted {
						t.Errorf("%+v", err)
					}
				}
				time.Sleep(5 * time.Second)
			})
		})
	}
}

func TestWithFleet_Missing(t *testing.T) {
	t.Parallel()
	set := mustSet(t, pooled())
	if _, err := interceptor.New(set); err == nil || !strings.Contains(err.Error(), "interceptor.WithFleet(fleet), with the fleet of redisbudget.New(client)") {
		t.Errorf("New: %v; want the line to add", err)
	}
	if _, err := interceptor.New(set, interceptor.WithFleet(nil)); err == nil {
		t.Error("a nil fleet is taken")
	}
	if _, err := interceptor.New(set, interceptor.WithBudget("orders", budget.Unlimited)); err != nil {
		t.Errorf("a budget that the program gives needs no pool: %v", err)
	}
	retrier := mustNew(t, mustSet(t, policy.Config{}))
	if err := retrier.Reload(set); err == nil || !strings.Contains(err.Error(), "WithFleet") {
		t.Errorf("Reload: %v; want the line to add", err)
	}
}

// A trial takes nothing from the pool: what others would lack for it is not sent.
func TestWithFleet_Observe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fleet := &distant{after: 10 * time.Millisecond, left: 5}
		c := pooled()
		c.Mode = policy.ModeObserve
		retrier := mustNew(t, mustSet(t, c), interceptor.WithFleet(fleet))
		s := testserver.Start(t)
		conn := s.Dial(t, retrier.DialOptions()...)
		s.On("*", down())
		for range 12 {
			_ = conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{})
		}
		c.Budgets[0].Config = func() budget.Config {
			ratio := budget.DefaultRatio()
			ratio.Percent, ratio.MinPerSecond, ratio.Fleet = 20, 100, "orders"
			return ratio
		}()
		if err := retrier.Reload(mustSet(t, c)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_ = conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{})
		}
		time.Sleep(5 * time.Second)
		// 10 calls earn a retry at 10 %, and with those that follow two at 20 %.
		if b := inUse(retrier); len(b) != 1 || b[0].Granted != 2 || b[0].Denied != 13 || fleet.asked != 0 {
			t.Errorf("%+v, and %d asked of the pool; want 2 granted, 13 denied, and nothing asked", b, fleet.asked)
		}
	})
}
