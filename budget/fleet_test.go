// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/lease"
)

// pools is a fleet whose pools a test answers for.
type pools map[string]*lease.Lease

func (pools) Check(budget.FleetConfig) error { return nil }

func (p pools) Lease(c budget.FleetConfig) (budget.Lease, error) {
	if c.Name == "broken" {
		return nil, errors.New("no such pool")
	}
	if p[c.Name] == nil {
		p[c.Name] = lease.New(c.PerSecond, 0, func() {})
	}
	return p[c.Name], nil
}

func (pools) Pools() []budget.PoolState { return nil }

// answer has a pool grant what is asked for, up to so many tokens.
func (p pools) answer(name string, now time.Duration, tokens int64) {
	if r, _, ok := p[name].Next(now); ok {
		p[name].Answered(now, r, lease.Answer{Tokens: min(r.Tokens, tokens*1e6)})
	}
}

func fleetConfig() budget.RatioConfig {
	c := budget.DefaultRatio()
	c.MinPerSecond, c.Fleet = 0, budget.FleetConfig{Name: "orders", PerSecond: 100}
	return c
}

func TestFleetRatio(t *testing.T) {
	t.Parallel()
	fleet := pools{}
	b, err := budget.NewFleetRatio(fleetConfig(), fleet)
	if err != nil {
		t.Fatal(err)
	}
	failure := budget.Charge{Kind: budget.KindFailure}
	fleet.answer("orders", 0, 0) // the first report
	for range 10 {
		b.Start(0)
	}
	p, ok := b.Withdraw(0, failure)
	if !ok || p.Asked || !b.Confirm(0, p) {
		t.Fatalf("%+v, %v: want what the calls have earned", p, ok)
	}
	p, ok = b.Withdraw(0, failure)
	if !ok || !p.Asked || b.Granted() != 1 {
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
	if p, ok = b.Withdraw(0, failure); !ok || p.Asked {
		t.Fatalf("%+v, %v: want what is leased", p, ok)
	}
	b.Return(0, p)
	if got := b.Balance(0); got != 1 {
		t.Errorf("balance %v; want the 1 that was not sent", got)
	}
	if got := b.Capacity(0); got != 2 {
		t.Errorf("capacity %v; want the 1 that calls have earned and the 1 that is leased", got)
	}
	if _, ok = b.Withdraw(0, budget.Charge{Kind: budget.KindUnsent}); !ok {
		t.Error("what is free is refused")
	}

	timeout, _ := b.Withdraw(0, budget.Charge{Kind: budget.KindTimeout})
	fleet.answer("orders", 0, 0) // empty
	denied := b.Denied()
	if b.Confirm(0, timeout) || b.Denied() != denied+1 {
		t.Errorf("an empty pool grants; %d denied", b.Denied())
	}
}

// A promise says when it can be known.
func TestFleetRatio_Wait(t *testing.T) {
	t.Parallel()
	fleet := pools{}
	b, err := budget.NewFleetRatio(fleetConfig(), fleet)
	if err != nil {
		t.Fatal(err)
	}
	r, _, _ := fleet["orders"].Next(0)
	fleet["orders"].Answered(10*time.Millisecond, r, lease.Answer{})
	if p, ok := b.Withdraw(time.Second, budget.Charge{}); !ok || !p.Asked || p.At != time.Second+20*time.Millisecond {
		t.Errorf("%+v, %v; want a promise for twice the time of an answer later", p, ok)
	}
}

func TestFleetRatio_Reload(t *testing.T) {
	t.Parallel()
	fleet := pools{}
	b, err := budget.NewFleetRatio(fleetConfig(), fleet)
	if err != nil {
		t.Fatal(err)
	}
	fleet.answer("orders", 0, 0)
	p, _ := b.Withdraw(0, budget.Charge{})
	fleet.answer("orders", 0, 1)
	other := fleetConfig()
	other.Percent = 20
	if err := b.Reload(0, other); err != nil {
		t.Fatal(err)
	}
	if b.Confirm(0, p) {
		t.Error("confirms what its pool has granted before a reload")
	}
	if b.Settle(0, p, true); b.Balance(0) != 0 {
		t.Errorf("balance %v; want nothing of what was granted before a reload", b.Balance(0))
	}
	other.Fleet.Name = "others"
	if err := b.Reload(0, other); err != nil {
		t.Fatal(err)
	}
	if b.Confirm(0, p) {
		t.Error("confirms what another pool has granted before a reload")
	}
	b.Settle(0, p, true)
	if got := b.Balance(0); got != 0 {
		t.Errorf("balance %v; want nothing of the other pool", got)
	}
	broken := fleetConfig()
	broken.Fleet.Name = "broken"
	if err := b.Reload(0, broken); err == nil || !strings.Contains(err.Error(), `"broken"`) {
		t.Errorf("%v; want the fleet's error, with the pool's name", err)
	}
	if err := b.Reload(0, budget.DefaultRatio()); err != nil || b.Balance(0) != 4 {
		t.Errorf("%v, balance %v; want the local reserve", err, b.Balance(0))
	}
}

func TestFleetConfig(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*budget.RatioConfig){
		"Fleet.Name \"\": must be 1 to 64":      func(c *budget.RatioConfig) { c.Fleet.Name = "" },
		"Fleet.Name \"a b\": must be 1 to 64":   func(c *budget.RatioConfig) { c.Fleet.Name = "a b" },
		"Fleet.PerSecond 0: must be 0.0001":     func(c *budget.RatioConfig) { c.Fleet.PerSecond = 0 },
		"MinPerSecond 1: must not stand beside": func(c *budget.RatioConfig) { c.MinPerSecond = 1 },
		"only a budget made by NewFleetRatio":   func(*budget.RatioConfig) {},
	} {
		c := fleetConfig()
		change(&c)
		if _, err := budget.NewRatio(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewRatio: %v; want %q", err, want)
		}
		if b, err := budget.New(c); err == nil || b != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, %v; want %q", b, err, want)
		}
	}
}
