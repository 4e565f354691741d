// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	_ "github.com/stagger-go/stagger/elsewhere" // the file's load balancing
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/policy"
)

// The test's binary is also the shop: tests start it for their processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// startTestShop starts the four processes.
func startTestShop(t *testing.T) (*fleet, *users) {
	t.Helper()
	f, err := startFleet(t.Context(), policy.ModeEnforce, 0)
	if err != nil {
		t.Fatal(err)
	}
	u, err := newUsers(f.grpc["gateway"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = u.conn.Close()
		f.stop()
	})
	return f, u
}

var (
	toOrders    = [2]string{"gateway", "orders"}
	toInventory = [2]string{"orders", "inventory"}
	toPayments  = [2]string{"orders", "payments"}
)

// attempts returns the attempts per call on a connection.
func (r *result) attempts(link [2]string) float64 {
	return r.sum(attemptsMetric, link) / r.sum(callsMetric, link)
}

// part returns the share of a method's calls for which is returns true.
func (r *result) part(method string, is func(answer) bool) float64 {
	all, n := 0.0, 0.0
	for _, a := range r.seen {
		if a.method == method {
			all++
			if is(a) {
				n++
			}
		}
	}
	return n / all
}

func ok(a answer) bool { return a.code == codes.OK }

// judge is a phase's test, and how late timers were meanwhile.
type judge struct {
	*testing.T

	late time.Duration
}

// timedf reports an error that a slow machine can also cause.
func (j judge) timedf(format string, args ...any) {
	j.Helper()
	if j.late > 25*time.Millisecond {
		j.Logf("not judged on this busy machine, whose timers are %v late: "+format, append([]any{j.late}, args...)...)
		return
	}
	j.Errorf(format, args...)
}

// lateness measures by how much most of the timers are late; the function that it returns ends that.
func lateness(ctx context.Context) func() time.Duration {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan []time.Duration, 1)
	go func() {
		var list []time.Duration
		for ctx.Err() == nil {
			due := time.Now().Add(5 * time.Millisecond)
			time.Sleep(time.Until(due))
			list = append(list, time.Since(due))
		}
		done <- list
	}()
	return func() time.Duration {
		stop()
		list := <-done
		slices.Sort(list)
		return list[len(list)*99/100]
	}
}

// A short version of the show, with the expected result of each phase. Processes and time are real, so the bounds are wide, and what
// a slow machine does to calls is told, not judged: payments made twice, and requests beyond the bounds, are errors on any.
func TestShop(t *testing.T) {
	t.Parallel()
	f, u := startTestShop(t)
	perform := func(p phase, length time.Duration, check func(j judge, r *result)) {
		t.Helper()
		p.length = length
		late := lateness(t.Context())
		r, err := play(t.Context(), f, u, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(p.title, func(t *testing.T) {
			check(judge{t, late()}, r)
			if t.Failed() {
				t.Log(r)
			}
			for _, link := range links {
				for reason := range r.reasons(link) {
					if _, err := explain.MeaningOf(reason); err != nil {
						t.Errorf("the show has no words for a reason: %v", err)
					}
				}
			}
		})
	}

	perform(phases[0], 500*time.Millisecond, func(t judge, r *result) {
		if p := min(r.part("Browse", ok), r.part("Buy", ok)); p < 0.95 || r.attempts(toPayments) != 1 {
			t.timedf("success %v, attempts at payments %v; want nearly all, and one each", p, r.attempts(toPayments))
		}
	})
	perform(phases[1], 2*time.Second, func(t judge, r *result) {
		if p := r.part("Buy", ok); p < 0.98 || r.attempts(toPayments) <= 1 {
			t.timedf("success of purchases %v, attempts at payments %v; want all, by retries", p, r.attempts(toPayments))
		}
		// When the process died, some requests were running: their payments are in its ledger, but were not answered.
		keys, err := readLedger(f.ledgerFile())
		if err != nil {
			t.Fatal(err)
		}
		again := 0
		for key, p := range keys {
			if p.made != 1 {
				t.Errorf("%s was paid %d times", key, p.made)
			}
			again += p.requests - 1
		}
		if again == 0 {
			t.timedf("no payment of %d was asked for again", len(keys))
		}
	})
	perform(phases[2], 1500*time.Millisecond, func(t judge, r *result) {
		slow := r.part("Browse", func(a answer) bool { return a.took > 450*time.Millisecond })
		if n := r.reasons(toInventory)["hedge"]; n == 0 || slow > 0.025 {
			t.timedf("%v hedges, %v of the calls slow; want fewer than half of the 0.05 that are slow by themselves", n, slow)
		}
	})
	perform(phases[3], 1500*time.Millisecond, func(t judge, r *result) {
		if browse, buy := r.part("Browse", ok), r.part("Buy", ok); min(browse, buy) < 0.4 || browse > 0.98 {
			t.timedf("success of Browse %v, of Buy %v; want that most are served, and not all", browse, buy)
		}
		if r.attempts(toOrders) > 1.2 || r.attempts(toInventory) > 2 {
			t.Errorf("attempts at orders %v, at inventory %v; want the budget and the queue to bound them", r.attempts(toOrders), r.attempts(toInventory))
		}
		if refused := r.reasons(toInventory); refused["budget_exhausted"]+refused["slow_everywhere"] == 0 {
			t.timedf("no attempt at inventory is refused: %v", refused)
		}
	})
	perform(phases[4], 5500*time.Millisecond, func(t judge, r *result) {
		if p := r.part("Browse", ok); p != 0 || r.attempts(toOrders) > 1.2 {
			t.Errorf("success %v, attempts at orders %v; want none, and no retries above those who know", p, r.attempts(toOrders))
		}
	})
	// The alerts' metrics grow at orders, for the dead service, and not at the gateway. alerts_test.yaml tests the alerts
	// themselves.
	perform(phase{title: "Inventory has been dead for five seconds"}, time.Second, func(t judge, r *result) {
		if n := r.reasons(toInventory)["not_connected"]; n != r.sum(callsMetric, toInventory) {
			t.timedf("not_connected for inventory: %v; want each of %v calls", n, r.sum(callsMetric, toInventory))
		}
		above := r.reasons(toOrders)
		if above["not_idempotent"] > 0 || above["pushback_stop"] < r.sum(callsMetric, toOrders) {
			t.timedf("at the gateway: %v; want pushback_stop for all of %v calls", above, r.sum(callsMetric, toOrders))
		}
		for _, of := range []string{"not_connected", "too_many_waiting", "retry", "hedge", "budget_exhausted"} {
			if above[of] != 0 {
				t.timedf("%s has grown by %v at the gateway, for the target above the broken one", of, above[of])
			}
		}
	})
	perform(phases[5], 1500*time.Millisecond, func(t judge, r *result) {
		if last := r.seen[len(r.seen)-20:]; (&result{seen: last}).part("Browse", ok) < 1 {
			t.timedf("of the last calls: %v; want success", last)
		}
	})

	names := map[string]bool{}
	for _, service := range []string{"gateway", "orders"} {
		families, err := f.metrics(t.Context(), service)
		if err != nil {
			t.Fatal(err)
		}
		for name, family := range families {
			names[name] = true
			if family.GetMetric()[0].GetHistogram() != nil {
				names[name+"_count"], names[name+"_bucket"] = true, true
			}
		}
	}
	checkRecorded(t, names)
}

// A restarted process knows the payment's key, only from the ledger.
func TestLedger(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/ledger.txt"
	for i, want := range []string{paid, asked, asked} {
		l, err := openLedger(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.pay(withKey(t.Context(), "a")); got != want || err != nil {
			t.Errorf("process %d: %q, %v; want %q", i+1, got, err, want)
		}
		if _, err := l.pay(t.Context()); err == nil {
			t.Error("a payment without a key is made")
		}
		if err := l.file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := readLedger(path)
	if err != nil || len(keys) != 1 || keys["a"] != (payments{requests: 3, made: 1}) {
		t.Errorf("%v, %v", keys, err)
	}
}

func withKey(ctx context.Context, key string) context.Context {
	return metadata.NewIncomingContext(ctx, metadata.Pairs(keyHeader, key))
}

// The second shop of the show has the same policies in another mode.
func TestPoliciesIn(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeOff} {
		set, err := policy.Parse("retry.yaml", policiesIn(mode))
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Mode(); got != mode {
			t.Errorf("mode %q; want %q", got, mode)
		}
	}
}
