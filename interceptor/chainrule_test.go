// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// storm is what becomes of the user's calls when servers of a chain fail.
type storm struct{ success, atD float64 }

// weather is a row of the table below: how often each server fails by itself. At 1, D alone is out.
type weather struct {
	guards string
	fails  float64
}

// outlast plays calls, one after the other, so that the same ones fail whatever the machine does.
func (w weather) outlast(t *testing.T, retry policy.RetrySpec, calls int) (result storm) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := chain{guards: w.guards, retry: retry, fails: w.fails}
		if w.fails == 1 {
			c.fails = 0
		}
		s := c.start(t)
		s.d.On(get, testserver.Random('D', w.fails, down()))
		answered := 0
		for range calls {
			if s.call(t) == nil {
				answered++
			}
		}
		result = storm{float64(answered) / float64(calls), float64(s.d.Count(get)) / float64(calls)}
	})
	return result
}

// What a service should do by default with its retries when the call that it serves is itself a retry.
// Success of the user's calls, and requests at D for each of them; 3 attempts, no budget, 1,000 calls:
//
//	interceptors | servers fail | ALLOW        | ONCE         | SUPPRESS
//	none         | 10 %         | 1.000   1.10 | 1.000   1.10 |  .998   1.10
//	none         | 30 %         |  .975   1.38 |  .960   1.35 |  .909   1.28
//	none         | D is out     |  .000  27    |  .000  17    |  .000  11
//	B and C      | 10 %         |  .999   1.10 |  .999   1.10 |  .997   1.10
//	B and C      | 30 %         |  .925   1.30 |  .919   1.30 |  .857   1.21
//	B and C      | D is out     |  .000   3    |  .000   3    |  .000   3
//
// ALLOW is the default: with the interceptors, an outage costs the same under each rule, and the others only
// fail calls that could have been answered. ONCE and SUPPRESS are for chains whose servers do not
// have the interceptor.
func TestAllowIsTheBestRuleForAChainWithTheInterceptors(t *testing.T) {
	t.Parallel()
	table := map[weather][3]storm{}
	for _, guards := range []string{"", "BC"} {
		for _, fails := range []float64{0.1, 0.3, 1} {
			w, calls := weather{guards, fails}, 500
			if fails == 1 {
				calls = 20 // each costs the same
			}
			var row [3]storm
			for rule := range row {
				row[rule] = w.outlast(t, three(policy.Chain(rule+1)), calls)
			}
			table[w] = row
			t.Logf("interceptors %-4q fails %.1f: %.3v", guards, fails, row)
			allow, once, suppress := row[0], row[1], row[2]
			if allow.success < once.success || once.success < suppress.success {
				t.Errorf("%+v: success %v; want ALLOW first, and SUPPRESS last", w, row)
			}
			if allow.atD > 1.1*suppress.atD && guards != "" {
				t.Errorf("%+v: requests %v; want less than a tenth saved by any rule", w, row)
			}
		}
	}
	if row := table[weather{"", 1}]; row != [3]storm{{0, 27}, {0, 17}, {0, 11}} {
		t.Errorf("an outage without the interceptors costs %v; want 27, 17 and 11 requests", row)
	}
	if row := table[weather{"BC", 1}]; row != [3]storm{{0, 3}, {0, 3}, {0, 3}} {
		t.Errorf("an outage with the interceptors costs %v; want 3 requests under each rule", row)
	}
	if row := table[weather{"BC", 0.3}]; row[0].success < row[2].success+0.05 {
		t.Errorf("success at 30 %% failures: %v; want a twentieth of all calls between ALLOW and SUPPRESS", row)
	}
	if row := table[weather{"BC", 0.1}]; row[0].success < 0.995 {
		t.Errorf("success at 10 %% failures: %v; want nearly all under ALLOW", row)
	}
}

// Where nobody has installed anything on the servers, the budgets keep a chain bounded: 10 % a layer are
// 1.1³ = 1.33 requests, and the reserves, of one a second, add the rest in the half minute that this takes.
func TestBudgetsBoundAChainWithoutTheInterceptors(t *testing.T) {
	t.Parallel()
	retry := three(policy.ChainAllow)
	retry.Budget = "" // the default one
	got := weather{"", 1}.outlast(t, retry, 2000)
	t.Logf("%.2f requests at D for a call", got.atD)
	if got.atD > 1.6 || got.atD < 1.33 {
		t.Errorf("%.2f requests at D for a call; want 1.33 to 1.6", got.atD)
	}
}

// A service that leaves its retries to the caller above must not forbid them to it.
func TestARetryLeftToTheCallerAboveIsNotForbiddenToIt(t *testing.T) {
	play(t, config(three(policy.ChainSuppress)), func(t *testing.T, s scene) {
		s.On(get, down())
		srv := testserver.Start(t, testserver.ServerOptions(grpc.ChainStreamInterceptor(s.retrier.StreamServer())))
		srv.On(get, testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
			return answer(ask(ctx, s.conn, false))
		}))
		for previous, want := range map[string]string{"": "[-1] after 3", "1": "[] after 1", "2": "[] after 1", "no number": "[-1] after 3"} {
			s.Reset()
			ctx := t.Context()
			if previous != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "grpc-previous-rpc-attempts", previous)
			}
			var trailer metadata.MD
			err := srv.Dial(t).Invoke(ctx, get, wrapperspb.String("a"), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
			got := fmt.Sprintf("%v after %d", trailer.Get(policy.PushbackTrailer), s.Count(get))
			if status.Code(err) != codes.Unavailable || got != want {
				t.Errorf("in attempt %q: %v, %s; want %s", previous, err, got, want)
			}
		}
	})
}
