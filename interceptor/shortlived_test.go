// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// Processes that make a few calls and end, 50 a second, while one of four backends hangs: README's policy.
func TestHelps_ShortLived(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, calls := range []int{10, 25, 50} {
		synctest.Test(t, func(t *testing.T) {
			var all []*testserver.Server
			for i := range 4 {
				s := testserver.Start(t, testserver.Keep(0))
				drawn := testkit.NewTimes(20*ms, 0.4, uint64(7+i))
				s.On("*", testserver.Func(func(context.Context, testserver.Attempt) testserver.Step { return testserver.OK().Delay(drawn.Draw()) }))
				all = append(all, s)
			}
			all[0].On("*", testserver.Hang())
			ok, n := 0, 0
			var mu sync.Mutex
			for p := range 40 {
				r := testkit.Must(interceptor.New(mustParse(t, entryOf("timeout: 2s\n    "+timeout400)), interceptor.WithRandom(testkit.NewTimes(0, 0, uint64(p)).Chance)))(t)
				conn := testkit.Must(testserver.DialAll(all, r.DialOptions()...))(t)
				conn.Connect()
				time.Sleep(10 * ms)
				var running sync.WaitGroup
				for range calls {
					running.Go(func() {
						err := conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{})
						mu.Lock()
						defer mu.Unlock()
						n++
						if err == nil {
							ok++
						}
					})
					time.Sleep(20 * ms)
				}
				running.Wait()
				_ = conn.Close()
				r.Close()
			}
			if t.Logf("%d calls a process: %.1f %% of %d", calls, 100*float64(ok)/float64(n), n); float64(ok) < 0.97*float64(n) {
				t.Errorf("%d of %d calls succeed; want 97 %%", ok, n)
			}
		})
	}
}
