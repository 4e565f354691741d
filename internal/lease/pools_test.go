// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
)

// fleet answers each request with a function of the test.
type fleet func(ctx context.Context, r budget.PoolRequest) (int64, float64, error)

func (f fleet) Draw(ctx context.Context, r budget.PoolRequest) (int64, float64, error) {
	return f(ctx, r)
}

// opened returns the pool orders with 100 tokens per second, after the answer to its first report.
func opened(t *testing.T, f fleet, changed func(State)) (*Pools, balance.Lease) {
	t.Helper()
	pools := NewPools(f, changed)
	t.Cleanup(pools.Close)
	l, err := pools.Lease("orders", 100)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return pools, l
}

// A call is promised a token, which the pool grants in the background.
func TestPools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		pools, l := opened(t, func(_ context.Context, r budget.PoolRequest) (int64, float64, error) {
			asked = append(asked, fmt.Sprint(r.Pool, " ", r.PerSecond, " ", r.Tokens))
			return r.Tokens, 3, nil
		}, func(State) { t.Error("told of nothing") })
		d, ok := l.Take(clock.Now(), token)
		synctest.Wait()
		if !ok || !d.Asked || !l.Confirm(clock.Now(), d) {
			t.Errorf("%+v, %v; want a promise that is kept", d, ok)
		}
		if again, _ := pools.Lease("orders", 7); again != l {
			t.Error("a pool has two leases")
		}
		d, _ = l.Take(clock.Now(), token)
		synctest.Wait()
		l.Return(clock.Now(), d)
		if want := []string{"orders 100 0", "orders 100 1000000", "orders 7 4000000"}; !slices.Equal(asked[:min(3, len(asked))], want) {
			t.Errorf("asked %q; want %q first", asked, want)
		}
		if s := pools.States(); len(s) != 1 || s[0].Name != "orders" || s[0].PerSecond != 7 || s[0].Clients != 3 || s[0].Err != nil {
			t.Errorf("%+v", s)
		}
	})
}

// A failing pool is reported once, and so is its recovery. It is asked again every second.
func TestPools_Away(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		var away atomic.Bool
		var told []State
		requests := 0
		pools, l := opened(t, func(context.Context, budget.PoolRequest) (int64, float64, error) {
			requests++
			if away.Load() {
				return 0, 0, refused
			}
			return 0, 2, nil
		}, func(s State) { told = append(told, s) })
		away.Store(true)
		_, _ = l.Take(clock.Now(), token)
		time.Sleep(10*time.Second + 1)
		synctest.Wait()
		if requests != 12 || len(told) != 1 || !errors.Is(told[0].Err, refused) || !errors.Is(pools.States()[0].Err, refused) {
			t.Errorf("%d requests, told %+v; want a report, the token, and one each second", requests, told)
		}
		if d, ok := l.Take(clock.Now(), token); !ok || d.Asked {
			t.Errorf("%+v, %v; want the client's share", d, ok)
		}
		away.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(told) != 2 || told[1].Err != nil {
			t.Errorf("told %+v; want that it is back", told)
		}
	})
}

// Impossible answers are ignored: with a wrong number of clients, this client would ask all the time or never.
func TestPools_AbsurdAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		tokens  int64
		clients float64
		absurd  bool
	}{
		{0, 0, false},
		{0, 1e9, false},
		{0, 1e10, true},
		{0, math.Inf(1), true},
		{0, math.NaN(), true},
		{0, -1, true},
		{-1, 1, true},
		{1, 1, true}, // although nothing was asked for
	} {
		synctest.Test(t, func(t *testing.T) {
			pools, _ := opened(t, func(context.Context, budget.PoolRequest) (int64, float64, error) {
				return row.tokens, row.clients, nil
			}, func(State) {})
			if err := pools.States()[0].Err; (err != nil) != row.absurd {
				t.Errorf("%+v: %v", row, err)
			}
		})
	}
}

// Close ends the running request and the lease. A Retrier may be closed while its pool is away.
func TestPools_Close(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *Pools){
		"while it asks":    func(p *Pools) { p.Close() },
		"by who is told":   func(*Pools) { time.Sleep(longestRequest) },
		"and closed again": func(p *Pools) { p.Close(); p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var pools *Pools
				pools, l := opened(t, func(ctx context.Context, r budget.PoolRequest) (int64, float64, error) {
					if r.Tokens == 0 {
						return 0, 1, nil
					}
					<-ctx.Done()
					return 0, 0, ctx.Err()
				}, func(State) { pools.Close() })
				d, _ := l.Take(clock.Now(), token)
				synctest.Wait()
				end(pools)
				synctest.Wait()
				if l.Confirm(clock.Now(), d) {
					t.Error("a promise is kept after the end")
				}
				if d, ok := l.Take(clock.Now(), token); ok {
					t.Errorf("%+v is promised after the end", d)
				}
			})
		})
	}
}

// The goroutine of a pool may run before Lease returns.
func TestPools_RateOfTheFirstRequest(t *testing.T) {
	t.Parallel()
	var got float64
	p := NewPools(fleet(func(_ context.Context, r budget.PoolRequest) (int64, float64, error) {
		got = r.PerSecond
		return 0, 0, nil
	}), func(State) {})
	defer p.Close()
	p.start = func(one *pool) {
		if r, _, ok := one.lease.Next(clock.Now()); ok {
			one.exchange(context.Background(), r)
		}
	}
	if _, err := p.Lease("orders", 100); err != nil || got != 100 {
		t.Errorf("the first request says %v a second, %v; want 100", got, err)
	}
}

// A fleet that grants less than the least useful amount isn't asked more often than another.
func TestPools_LessThanLeast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		_, l := opened(t, func(_ context.Context, r budget.PoolRequest) (int64, float64, error) {
			if n++; n > 1000 {
				time.Sleep(time.Second)
			}
			return min(r.Tokens, 1), 1, nil
		}, func(State) {})
		d, ok := l.Take(clock.Now(), token)
		synctest.Wait()
		if !ok || !d.Asked || n > 10 {
			t.Errorf("%+v, %v: %d requests at once", d, ok, n)
		}
		l.Return(clock.Now(), d)
		time.Sleep(3 * time.Second)
	})
}

// A fleet that panics counts as away.
func TestPools_Panic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pools, _ := opened(t, func(context.Context, budget.PoolRequest) (int64, float64, error) {
			panic("boom")
		}, func(State) {})
		if s := pools.States()[0]; s.Err == nil {
			t.Errorf("%+v", s)
		}
	})
}
