// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisfleet

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	method  = "/acme.orders.v1.OrderService/GetOrder"
	backoff = 200 * time.Millisecond
	file    = `
budgets: [{name: orders, ratio: {percent: 0.01, fleet: {name: orders, perSecond: 1000}}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 2, initialBackoff: BACKOFF, maxBackoff: BACKOFF, backoffMultiplier: 1, jitter: NONE, retryableStatusCodes: [UNAVAILABLE], budget: orders}
`
)

// dial returns a connection whose calls lease their retries.
func dial(t *testing.T, s *testserver.Server, fleet budget.Fleet, backoff string) *grpc.ClientConn {
	t.Helper()
	set := must.Get(policy.Parse("retry.yaml", []byte(strings.ReplaceAll(file, "BACKOFF", backoff))))(t)
	retrier := must.Get(interceptor.New(set, interceptor.WithFleet(fleet)))(t)
	t.Cleanup(func() { retrier.Close() })
	return s.Dial(t, retrier.DialOptions()...)
}

func newFleet(t *testing.T, client redis.Scripter, options ...redisbudget.Option) *redisbudget.Fleet {
	t.Helper()
	return must.Get(redisbudget.New(client, options...))(t)
}

// link is a client of Redis that counts its users, and may hang.
type link struct {
	redis.Scripter

	hangs   atomic.Bool
	uses    atomic.Int64
	byCalls atomic.Int64 // uses on the stack of a call
}

// count records the origin of a request.
func (l *link) count() {
	l.uses.Add(1)
	stack := make([]byte, 64<<10)
	if text := string(stack[:runtime.Stack(stack, false)]); strings.Contains(text, "stagger/interceptor") || !strings.Contains(text, "(*pool).keepAsking") {
		l.byCalls.Add(1)
	}
}

func (l *link) EvalSha(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	l.count()
	if l.hangs.Load() {
		<-ctx.Done()
		return redis.NewCmdResult(nil, ctx.Err())
	}
	wanted, _ := args[1].(int64)
	return redis.NewCmdResult([]any{wanted, "1"}, nil)
}

// However long Redis hangs, calls take the same time as without it: their backoff, or none. No call does I/O.
func TestFleet_NoCallWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := new(link)
		fleet := newFleet(t, l, redisbudget.Timeout(5*time.Second))
		s := testserver.Start(t)
		s.On(method, testserver.Fail(codes.Unavailable, "down"))
		conn := dial(t, s, fleet, "0.2s")
		play := func(during string) (waited int) {
			var calls sync.WaitGroup
			var waits atomic.Int64
			for i := range 100 {
				calls.Go(func() {
					time.Sleep(time.Duration(i) * 37 * time.Millisecond)
					began := time.Now()
					_ = conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
					switch took := time.Since(began); took {
					case 0:
					case backoff:
						waits.Add(1)
					default:
						t.Errorf("%s, call %d took %v; want nothing, or the backoff", during, i, took)
					}
				})
			}
			calls.Wait()
			return int(waits.Load())
		}
		if n := play("while Redis answers"); n != 100 {
			t.Errorf("%d calls waited for their retry; want 100", n)
		}
		l.hangs.Store(true)
		if n := play("while Redis hangs"); n == 0 {
			t.Error("no call was promised a token, so this shows nothing")
		}
		if l.uses.Load() < 3 || l.byCalls.Load() != 0 {
			t.Errorf("%d of %d requests were made by calls; want none", l.byCalls.Load(), l.uses.Load())
		}
	})
}
