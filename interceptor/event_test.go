// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// history is what events say of the attempts of a call.
func (j *journal) history() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	for _, e := range j.decisions {
		fmt.Fprintf(&b, "after %d %v: %s, before that %v\n", e.Attempt, e.Code, e.Decision.Reason, e.Codes)
	}
	slices.SortFunc(j.attempts, func(a, b interceptor.AttemptEvent) int { return a.Number - b.Number })
	for _, e := range j.attempts {
		if e.Hedge {
			fmt.Fprintf(&b, "%d is a hedge\n", e.Number)
		}
	}
	for _, e := range j.calls {
		decided := ""
		if e.Decided {
			decided = ", decided"
		}
		fmt.Fprintf(&b, "%d retries, %d hedges, %v, %s%s", e.Retries, e.Hedges, e.Codes, e.Reason, decided)
	}
	return b.String()
}

func TestEventHistory(t *testing.T) {
	slow := plain()
	slow.PerAttemptTimeout = 50 * ms
	place := slow
	place.OnAttemptTimeout = policy.OnTimeoutRetry
	for name, row := range map[string]struct {
		config policy.Config
		script []testserver.Step
		cancel bool // while it waits
		want   string
	}{
		"success at once": {config(plain()), []testserver.Step{text("fine")}, false, "0 retries, 0 hedges, [], succeeded"},
		"final failure":   {config(plain()), []testserver.Step{testserver.Fail(codes.NotFound)}, false, "after 1 NotFound: non_retryable, before that []\n0 retries, 0 hedges, [NotFound], non_retryable, decided"},
		"two retries": {config(plain()), []testserver.Step{down().Times(2), text("fine")}, false, "after 1 Unavailable: retry, before that []\n" +
			"after 2 Unavailable: retry, before that [Unavailable]\n2 retries, 0 hedges, [Unavailable Unavailable OK], succeeded"},
		"slow, beside": {config(slow), []testserver.Step{testserver.Hang().Times(1), down().Times(1), text("fine")}, false, "after 1 DeadlineExceeded: hedge, before that []\n" +
			"after 2 Unavailable: retry, before that []\n2 is a hedge\n1 retries, 1 hedges, [Unavailable OK Canceled], succeeded"},
		"slow, in place": {config(place), []testserver.Step{testserver.Hang().Times(1), text("fine")}, false, "after 1 DeadlineExceeded: retry, before that []\n" +
			"1 retries, 0 hedges, [Canceled OK], succeeded"},
		"hedged": {hedged(), []testserver.Step{testserver.Hang().Times(2), text("fine")}, false, "after 1 DeadlineExceeded: hedge, before that []\n" +
			"after 2 DeadlineExceeded: hedge, before that []\n2 is a hedge\n3 is a hedge\n0 retries, 2 hedges, [OK Canceled Canceled], succeeded"},
		"cancelled in the backoff": {config(plain()), []testserver.Step{down()}, true, "after 1 Unavailable: retry, before that []\n0 retries, 0 hedges, [Unavailable], cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, row.script...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.cancel {
					time.AfterFunc(50*ms, cancel)
				}
				_, _ = s.call(ctx, get)
				if got := s.history(); got != row.want {
					t.Errorf("%s\nwant\n%s", got, row.want)
				}
			})
		})
	}
}

// An observer of attempts switches the fast path off, so one more has none.
func TestEventStaticMethodAndBudget(t *testing.T) {
	play(t, budgeted(reserve(1)), func(t *testing.T, s scene) {
		fast := new(journal)
		o := fast.observer()
		o.Attempt = nil
		conn := s.Dial(t, mustNew(t, mustSet(t, budgeted(reserve(1))), interceptor.WithObserver(o)).DialOptions()...)
		for name, client := range map[string]scene{
			"watched": s, "fast": {Server: s.Server, journal: fast, conn: conn},
		} {
			for _, options := range [][]grpc.CallOption{{grpc.StaticMethod()}, nil} {
				s.Reset()
				s.On(get, down().Times(1), text("fine"))
				*client.journal = journal{}
				_, _ = client.call(t.Context(), get, options...) // with a failure, and without
				_, _ = client.call(t.Context(), get, options...)
				static := len(options) > 0
				if len(client.calls) != 2 || len(client.decisions) != 1 {
					t.Fatalf("%s: %+v %+v", name, client.calls, client.decisions)
				}
				if d := client.decisions[0]; d.StaticMethod != static || d.Budget != "orders" {
					t.Errorf("%s, static %v: %+v", name, static, d)
				}
				for _, c := range client.calls {
					if c.StaticMethod != static || c.Budget != "orders" {
						t.Errorf("%s, static %v: %+v", name, static, c)
					}
				}
				if c := client.calls[0]; c.Retries != 1 || fmt.Sprint(c.Codes) != "[Unavailable OK]" {
					t.Errorf("%s: %+v", name, c)
				}
			}
		}
	})
}
