// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

const ms = time.Millisecond

// bench is a server with a client of one kind.
type bench struct {
	*testserver.Server

	conn  *grpc.ClientConn
	began time.Time
}

// on plays a client in a storm with an attempt timeout.
func on(t *testing.T, c client, attemptTimeout time.Duration, play func(*testing.T, bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := bench{Server: testserver.Start(t)}
		b.conn = b.Dial(t, testkit.Must(c.options(storm{attemptTimeout: attemptTimeout}))(t).Dial...)
		b.conn.Connect()
		synctest.Wait()
		b.began = time.Now()
		play(t, b)
	})
}

// calls makes calls, one after the other.
func (b bench) calls(t *testing.T, n int) {
	t.Helper()
	for range n {
		b.call(t)
		synctest.Wait()
	}
}

// call makes a call.
func (b bench) call(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_ = b.conn.Invoke(ctx, "/stagger.storm.v1.Shop/Get", &emptypb.Empty{}, &emptypb.Empty{})
}

// times returns when the attempts came.
func (b bench) times() (list []time.Duration) {
	for _, a := range b.Attempts() {
		list = append(list, a.Time.Sub(b.began))
	}
	return list
}

// printed returns what results.md says of a client, and of all that retry.
func printed(t *testing.T) (of map[string]string, ofAll string) {
	t.Helper()
	text, _, _ := strings.Cut(string(testkit.Must(os.ReadFile("results.md"))(t)), "## The storms")
	of = map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \| (.*) \|$`).FindAllStringSubmatch(text, -1) {
		of[row[1]] = row[2]
	}
	return of, strings.Join(strings.Fields(text), " ")
}

// What results.md says of the peers' retries is what they do: their attempts, backoffs, codes and attempt timeouts.
func TestPeers_Retries(t *testing.T) {
	t.Parallel()
	_, ofAll := printed(t)
	for _, c := range peersOf() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.Internal} {
				on(t, c, 0, func(t *testing.T, b bench) {
					b.On("*", testserver.Fail(code))
					b.calls(t, 1)
					want := "All clients that retry make up to " + fmt.Sprint(b.Count("*")) +
						" attempts after UNAVAILABLE and RESOURCE_EXHAUSTED, with a backoff of 100 ms that doubles up to 2 s."
					if code == codes.Internal {
						if b.Count("*") != 1 {
							t.Errorf("%d attempts after %s; want one", b.Count("*"), code)
						}
						return
					}
					if !strings.Contains(ofAll, want) {
						t.Errorf("%d attempts after %s, and the page does not say %q", b.Count("*"), code, want)
					}
					times := b.times()
					for i, backoff := 1, float64(initialBackoff); i < len(times); i, backoff = i+1, min(2*backoff, float64(maxBackoff)) {
						if got := float64(times[i] - times[i-1]); got < (1-jitter)*backoff || got > (1+jitter)*backoff {
							t.Errorf("attempts at %v; want backoffs that double from 100 ms, ± 20 %%", times)
						}
					}
				})
			}
		})
	}
}

// What a peer makes of a slow attempt is what its onSlow and the page say.
func TestPeers_SlowAttempts(t *testing.T) {
	t.Parallel()
	of, ofAll := printed(t)
	for _, text := range []string{
		"If the storm has attempt timeouts, all clients that support them set them.",
		"They have no attempt timeouts", // gRPC's
	} {
		if !strings.Contains(ofAll, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	hedge := "the same around its hedge policy instead of the timeout: one hedge for each attempt, after the attempt timeout, " +
		"or 200 ms in storms that have none"
	if of["failsafe, hedge"] != hedge || !strings.HasSuffix(of["failsafe"], "around its timeout policy") {
		t.Errorf("the page says of failsafe %q and of its hedges %q; want %q", of["failsafe"], of["failsafe, hedge"], hedge)
	}
	for _, c := range peersOf() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, timeout := range []time.Duration{0, 100 * ms} {
				on(t, c, timeout, func(t *testing.T, b bench) {
					b.On("*", testserver.Hang())
					b.calls(t, 1)
					all := b.Attempts()
					first := all[0].End.Sub(all[0].Time)
					var second time.Duration
					if len(all) > 1 {
						second = all[1].Time.Sub(all[0].Time)
					}
					switch {
					case c.onSlow == onSlowHedge:
						if delay := cmp.Or(timeout, 200*ms); second != delay || first != 3*time.Second {
							t.Errorf("attempt timeout %v: a hedge after %v, and the first attempt ends after %v; want %v, 3s",
								timeout, second, first, delay)
						}
					case c.onSlow == onSlowTimeout && timeout > 0:
						if first != timeout || second < timeout+80*ms || second > timeout+120*ms {
							t.Errorf("attempt timeout %v: the first attempt ends after %v, the next comes after %v; want a retry", timeout, first, second)
						}
					case second != 0 || first != 3*time.Second:
						t.Errorf("attempt timeout %v: the first attempt ends after %v, the next comes after %v; want one that waits", timeout, first, second)
					}
				})
			}
		})
	}
}

// The throttles, the budget and the breaker of the peers are those of the page.
func TestPeers_Limits(t *testing.T) {
	t.Parallel()
	of, _ := printed(t)
	peer := func(name string) client {
		all := peersOf()
		return all[slices.IndexFunc(all, func(c client) bool { return c.name == name })]
	}
	says := func(t *testing.T, name, want string) {
		t.Helper()
		if !strings.Contains(of[name], want) {
			t.Errorf("the page says of %s %q; want %q", name, of[name], want)
		}
	}
	const page = "gRPC; gRPC, throttling; 100/1"
	for name, row := range map[string]struct {
		tokens    int
		ofSuccess float64
		text      string
	}{
		"gRPC, throttling":       {10, 0.1, "%d tokens and %v for a success, gRFC A6's example"},
		"gRPC, throttling 100/1": {100, 1, "%d tokens and %v for a success, which allows retries while more than half"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, peer(name), 0, func(t *testing.T, b bench) {
				b.On("*", testserver.Fail(codes.Unavailable))
				b.calls(t, row.tokens)
				if extra, want := b.Count("*")-row.tokens, row.tokens*2/5; extra != want { // four of each five attempts down to half of the tokens
					t.Errorf("%d extra attempts; want %d", extra, want)
				}
				says(t, page, fmt.Sprintf(row.text, row.tokens, row.ofSuccess))
			})
		})
	}
	t.Run("breaker", func(t *testing.T) {
		t.Parallel()
		for failing, opens := range map[int]bool{9: false, 10: true} {
			on(t, peer("failsafe, breaker"), 0, func(t *testing.T, b bench) {
				b.On("*", testserver.OK().Times(20-failing), testserver.Fail(codes.NotFound))
				b.calls(t, 20)
				if b.Count("*") != 20 {
					t.Errorf("%d attempts; want 20 before it opens", b.Count("*"))
				}
				opened := time.Now()
				for b.calls(t, 1); b.Count("*") == 20 && time.Since(opened) < time.Second; b.calls(t, 1) {
					time.Sleep(10 * ms)
				}
				open := time.Since(opened)
				if (open > 0) != opens {
					t.Errorf("%d failures of 20: open for %v; want it to open: %v", failing, open, opens)
				}
				if opens {
					const text = "the same around its circuit breaker: opens for %v s when half of at least 20 attempts in a second fail"
					says(t, "failsafe, breaker", fmt.Sprintf(text, open.Seconds()))
				}
			})
		}
	})
	t.Run("breaker of 19 calls", func(t *testing.T) {
		t.Parallel()
		on(t, peer("failsafe, breaker"), 0, func(t *testing.T, b bench) {
			b.On("*", testserver.Fail(codes.NotFound))
			for range 3 {
				b.calls(t, 19)
				time.Sleep(1100 * ms)
			}
			if b.Count("*") != 3*19 {
				t.Errorf("%d attempts; want it closed with 19 in a second", b.Count("*"))
			}
		})
	})
	t.Run("budget", func(t *testing.T) {
		t.Parallel()
		on(t, peer("failsafe, budget"), 0, func(t *testing.T, b bench) { // a part of the calls that run may be retries that run
			const n = 1000
			b.On("*", testserver.Fail(codes.Unavailable).Delay(50*ms))
			var calls sync.WaitGroup
			for range n {
				calls.Go(func() { b.call(t) })
			}
			calls.Wait()
			most, retries := 0, b.Attempts()[n:]
			for _, a := range retries {
				running := 0
				for _, other := range retries {
					if !other.Time.After(a.Time) && other.End.After(a.Time) {
						running++
					}
				}
				most = max(most, running)
			}
			// To the next ten: it lets one begin while the others are no more than a tenth.
			says(t, "failsafe, budget", fmt.Sprintf("the same with its budget of %.0f %%", 10*math.Round(10*float64(most)/n)))
		})
	})
}
