// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/tools/must"
)

// pools is a fleet whose pools a test answers.
type pools map[string]*Lease

func (p pools) lease(name string, perSecond float64) (balance.Lease, error) {
	if name == "broken" {
		return nil, errors.New("no such pool")
	}
	if p[name] == nil {
		p[name] = New(perSecond, 0, func() {})
	}
	return p[name], nil
}

// answer makes a pool grant the request, up to so many tokens.
func (p pools) answer(name string, now time.Duration, tokens int64) {
	if r, _, ok := p[name].Next(now); ok {
		p[name].Answered(now, r, Answer{Tokens: min(r.Tokens, tokens*1e6)})
	}
}

func fleetConfig() balance.RatioConfig {
	c := balance.DefaultRatio()
	c.MinPerSecond, c.Fleet = 100, "orders"
	return c
}

func TestFleetRatio(t *testing.T) {
	t.Parallel()
	fleet := pools{}
	b := must.Get(balance.New(fleetConfig(), fleet.lease))(t)
	failure := balance.Charge{Kind: balance.KindFailure}
	fleet.answer("orders", 0, 0) // the first report
	for range 10 {
		b.Start(0)
	}
	p, ok := b.Withdraw(0, failure)
	if !ok || promised(p) || !b.Confirm(0, p) {
		t.Fatalf("%+v, %v: want what the calls have earned", p, ok)
	}
	p, ok = b.Withdraw(0, failure)
	if !ok || !promised(p) || b.Granted() != 1 {
		t.Fatalf("%+v, %v, %d granted; want a promise", p, ok, b.Granted())
	}
	fleet.answer("orders", 0, 3)
	if !b.Confirm(0, p) || b.Granted() != 2 {
		t.Errorf("not confirmed; %d granted", b.Granted())
	}
	if got := b.Balance(0); got != 0 {
		t.Errorf("balance %v; want 0", got)
	}
	b.Settle(0, p, true)
	if got := b.Balance(0); got != 1 {
		t.Errorf("balance %v; want the 1 that helped", got)
	}
	if p, ok = b.Withdraw(0, failure); !ok || promised(p) {
		t.Fatalf("%+v, %v: want what is leased", p, ok)
	}
	b.Return(0, p)
	if got := b.Balance(0); got != 1 {
		t.Errorf("balance %v; want the 1 that was not sent", got)
	}
	if got := b.Capacity(0); got != 2 {
		t.Errorf("capacity %v; want the 1 that calls have earned and the 1 that is leased", got)
	}
	if _, ok = b.Withdraw(0, balance.Charge{Kind: balance.KindUnsent}); !ok {
		t.Error("what is free is refused")
	}

	timeout, _ := b.Withdraw(0, balance.Charge{Kind: balance.KindTimeout})
	fleet.answer("orders", 0, 0) // empty
	denied := b.Denied()
	if b.Confirm(0, timeout) || b.Denied() != denied+1 {
		t.Errorf("an empty pool grants; %d denied", b.Denied())
	}
}

// A promise has the time at which it can be confirmed.
func TestFleetRatio_Wait(t *testing.T) {
	t.Parallel()
	fleet := pools{}
	b := must.Get(balance.New(fleetConfig(), fleet.lease))(t)
	r, _, _ := fleet["orders"].Next(0)
	fleet["orders"].Answered(10*time.Millisecond, r, Answer{})
	p, ok := b.Withdraw(time.Second, balance.Charge{})
	if at, promised := balance.Promised(p); !ok || !promised || at != time.Second+20*time.Millisecond {
		t.Errorf("%+v, %v; want a promise for twice the time of an answer later", p, ok)
	}
}

func TestFleetRatio_Reload(t *testing.T) {
	t.Parallel()
	fleet := pools{}
	b := must.Get(balance.New(fleetConfig(), fleet.lease))(t)
	fleet.answer("orders", 0, 0)
	p, _ := b.Withdraw(0, balance.Charge{})
	fleet.answer("orders", 0, 1)
	other := fleetConfig()
	other.Percent = 20
	must.Do(t, b.Reload(0, other))
	if b.Confirm(0, p) {
		t.Error("confirms what its pool has granted before a reload")
	}
	if b.Settle(0, p, true); b.Balance(0) != 0 {
		t.Errorf("balance %v; want nothing of what was granted before a reload", b.Balance(0))
	}
	other.Fleet = "others"
	must.Do(t, b.Reload(0, other))
	if b.Confirm(0, p) {
		t.Error("confirms what another pool has granted before a reload")
	}
	b.Settle(0, p, true)
	if got := b.Balance(0); got != 0 {
		t.Errorf("balance %v; want nothing of the other pool", got)
	}
	broken := fleetConfig()
	broken.Fleet = "broken"
	if err := b.Reload(0, broken); err == nil || !strings.Contains(err.Error(), `"broken"`) {
		t.Errorf("%v; want the fleet's error, with the pool's name", err)
	}
	if err := b.Reload(0, balance.DefaultRatio()); err != nil || b.Balance(0) != 4 {
		t.Errorf("%v, balance %v; want the local reserve", err, b.Balance(0))
	}
}

// A reload cancels promises: no tokens are paid for them.
func TestFleetRatio_ReloadForgets(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(balance.Budget, balance.Permit){
		"confirmed": func(b balance.Budget, p balance.Permit) { b.Confirm(0, p) },
		"returned":  func(b balance.Budget, p balance.Permit) { b.Return(0, p) },
	} {
		fleet := pools{}
		b := must.Get(balance.New(fleetConfig(), fleet.lease))(t)
		fleet.answer("orders", 0, 0)
		p, ok := b.Withdraw(0, balance.Charge{})
		if !ok || !promised(p) {
			t.Fatal(p, ok)
		}
		c := fleetConfig()
		c.Percent = 20
		must.Do(t, b.Reload(0, c))
		end(b, p)
		l := fleet["orders"]
		waiting := len(l.waiting)
		fleet.answer("orders", 0, 100)
		l.Balance(time.Hour)
		if waiting != 0 || len(l.granted) != 0 {
			t.Errorf("%s: %d wait, and %d grants are remembered for ever", name, waiting, len(l.granted))
		}
	}
}

func TestFleetConfig(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*balance.RatioConfig){
		"Fleet \"a b\": must be 1 to 64":       func(c *balance.RatioConfig) { c.Fleet = "a b" },
		"MinPerSecond 0: must be 0.0001":       func(c *balance.RatioConfig) { c.MinPerSecond = 0 },
		"Fleet \"orders\": only a Retrier has": func(*balance.RatioConfig) {},
	} {
		c := fleetConfig()
		change(&c)
		if b, err := balance.New(c, nil); err == nil || b != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, %v; want %q", b, err, want)
		}
	}
}

func promised(p balance.Permit) bool {
	_, ok := balance.Promised(p)
	return ok
}

// BenchmarkFleet measures the cost of a budget that leases its reserve, relative to one with a local reserve in the same run:
// the median of alternating measurements.
func BenchmarkFleet(b *testing.B) {
	const n = 10_000
	took := func(one balance.Budget, op func(balance.Budget)) time.Duration {
		begin := time.Now()
		for range n {
			op(one)
		}
		return time.Since(begin)
	}
	start := func(one balance.Budget) { one.Start(0) }
	withdraw := func(one balance.Budget) {
		if p, ok := one.Withdraw(0, balance.Charge{}); ok {
			one.Return(0, p)
		}
	}
	for name, row := range map[string]struct {
		op    func(balance.Budget)
		calls int // that have earned
	}{
		"start":                      {start, 1},
		"withdraw what calls earned": {withdraw, 100},
		"withdraw what is leased":    {withdraw, 1},
	} {
		op := row.op
		b.Run(name, func(b *testing.B) {
			fleet := pools{}
			leased, err := balance.New(fleetConfig(), fleet.lease)
			if err != nil {
				b.Fatal(err)
			}
			local, err := balance.New(balance.DefaultRatio(), nil)
			if err != nil {
				b.Fatal(err)
			}
			for range 3 { // the first report; what a call waits for, and what it gives back
				if p, ok := leased.Withdraw(0, balance.Charge{}); ok {
					fleet.answer("orders", 0, 5)
					leased.Confirm(0, p)
					leased.Return(0, p)
				}
			}
			if leased.Balance(0) < 1 {
				b.Fatal("nothing is leased")
			}
			for range row.calls {
				local.Start(0)
				leased.Start(0)
			}
			var times, parts []float64
			for b.Loop() {
				base := took(local, op)
				own := took(leased, op)
				times, parts = append(times, float64(own)/n), append(parts, float64(own)/float64(base))
			}
			slices.Sort(times)
			slices.Sort(parts)
			b.ReportMetric(times[len(times)/2], "ns/call")
			b.ReportMetric(parts[len(parts)/2], "x/local")
		})
	}
}
