// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// slowly is how many requests reach D for each call of the user, when D never answers, each service sends
// another attempt after a second, and all servers have the interceptor.
func slowly(t *testing.T, rule policy.Chain, budget string, calls int) (atD float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		retry := three(rule)
		retry.Budget, retry.PerAttemptTimeout = budget, time.Second
		s := chain{guards: "BC", retry: retry, unary: true}.start(t)
		s.d.On(get, testserver.Hang())
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if err := ask(ctx, s.user, true); err == nil {
					t.Error("a call is answered")
				}
			})
			time.Sleep(20 * ms)
		}
		wg.Wait()
		atD = float64(s.d.Count(get)) / float64(calls)
	})
	return atD
}

// A service whose own call is slow has not given up, and so says nothing: only the rule for chains, and
// above all the budgets, stand between a server that hangs and 27 requests.
func TestASlowEndOfAChainIsBoundedByTheBudgets(t *testing.T) {
	t.Parallel()
	for rule, want := range map[policy.Chain]float64{policy.ChainAllow: 27, policy.ChainOnce: 17, policy.ChainSuppress: 11} {
		if got := slowly(t, rule, policy.NoBudget, 3); got != want {
			t.Errorf("%v without budgets: %v requests at D for a call; want %v", rule, got, want)
		}
	}
	if got := slowly(t, policy.ChainAllow, "", 1000); got > 1.1 {
		t.Errorf("with the default budgets: %v requests at D for a call; want at most 1.1", got)
	}
}
