// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// byQuantile hedges at the 95th percentile, after a second until that is known.
func byQuantile() policy.Config {
	return hedged(func(h *policy.HedgeSpec) {
		h.Delay = time.Second
		h.Quantile, h.MinDelay, h.MaxDelay = 0.95, 5*ms, 400*ms
	})
}

// train makes calls that take as long as they are told to.
func (s scene) train(t *testing.T, calls int, took func(i int) time.Duration) {
	t.Helper()
	for i := range calls {
		s.On(get, text("quick").Delay(took(i)))
		must.Get(s.call(t.Context(), get))(t)
	}
}

// A hedge that wins cuts the first attempt short. Were only winners counted, the quantile would creep
// down until every call is hedged.
func TestLatency_HedgesDoNotPullItDown(t *testing.T) {
	play(t, byQuantile(), func(t *testing.T, s scene) {
		s.train(t, 100, func(i int) time.Duration { return time.Duration(i%100+1) * ms })
		var slow atomic.Int64
		s.On(get, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			if len(a.Metadata.Get("grpc-previous-rpc-attempts")) > 0 {
				return text("hedge").Delay(ms)
			}
			return text("first").Delay(time.Duration(slow.Add(1)%100+1) * ms)
		}))
		s.Reset()
		for range 2000 {
			must.Get(s.call(t.Context(), get))(t)
		}
		synctest.Wait()
		if extra := s.Count(get) - 2000; extra < 40 || extra > 160 {
			t.Errorf("%d hedges for 2000 calls; want about 5 %%", extra)
		}
	})
}
