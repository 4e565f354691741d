// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/sim"
)

// play plays an outage with one call of one client, in virtual time.
func play(t *testing.T, s *sim.Scenario, c Client) Record {
	t.Helper()
	var records []Record
	synctest.Test(t, func(t *testing.T) {
		var err error
		o := Outage{Scenario: s, Calls: []Call{{Method: method}}, Clients: []Client{c}}
		if records, err = o.Play(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return records[0]
}

func TestPlay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		faults   []sim.Fault
		ok       bool
		took     time.Duration
		requests []int // at each service
	}{
		"every service does its work": {nil, true, 60 * ms, []int{1, 1, 1}},
		"the last is down":            {[]sim.Fault{{Service: "shop", Down: true, Code: codes.Unavailable}}, false, 40 * ms, []int{1, 1, 1}},
		"the first is down":           {[]sim.Fault{{Service: "front", Down: true, Code: codes.Unavailable}}, false, 0, []int{1, 0, 0}},
		"the last hangs":              {[]sim.Fault{{Service: "shop", Hang: true}}, false, time.Second, []int{1, 1, 1}},
		"the last always fails":       {[]sim.Fault{{Service: "shop", Flaky: 1, Code: codes.Unavailable}}, false, 60 * ms, []int{1, 1, 1}},
		"the last is always slow": {
			[]sim.Fault{{Service: "shop", Slow: &sim.Slow{Part: 1, By: &sim.Distribution{A: 100 * ms}}}}, true, 160 * ms, []int{1, 1, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, chain(row.faults...), plain())
			var requests []int
			for _, list := range r.Requests {
				requests = append(requests, len(list))
			}
			if c := r.Calls[0]; c.OK != row.ok || c.Took != row.took || !slices.Equal(requests, row.requests) {
				t.Errorf("%+v, %v requests; want ok %v after %v, %v", c, requests, row.ok, row.took, row.requests)
			}
		})
	}
}

func TestPlayEndsAtOnce(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, row := range map[string]struct {
		change func(*sim.Scenario, *Client)
		after  time.Duration // when the context ends
		want   error
	}{
		"interrupted":      {func(*sim.Scenario, *Client) {}, 300 * ms, context.Canceled},
		"no workers":       {func(s *sim.Scenario, _ *Client) { s.Services[0].Workers = 0 }, 0, nil},
		"no such service":  {func(s *sim.Scenario, _ *Client) { s.Fleets[0].Calls[0].Service = "shoe" }, 0, nil},
		"bad options":      {func(_ *sim.Scenario, c *Client) { c.Options = func() (Options, error) { return Options{}, broken } }, 0, broken},
		"bad dial options": {func(_ *sim.Scenario, c *Client) { c.Options = badDial }, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, c := pulse(), plain()
				row.change(s, &c)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.after > 0 {
					time.AfterFunc(row.after, cancel)
				}
				start := time.Now()
				o := Outage{Scenario: s, Calls: Arrivals(s, 1), Clients: []Client{plain(), c}}
				if _, err := o.Play(ctx); err == nil || row.want != nil && !errors.Is(err, row.want) {
					t.Errorf("error %v; want %v", err, row.want)
				}
				if took := time.Since(start); took != row.after {
					t.Errorf("it went on for %v; want %v", took, row.after)
				}
			})
		})
	}
}

func badDial() (Options, error) {
	return Options{Dial: []grpc.DialOption{grpc.WithDefaultServiceConfig("{")}}, nil
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms     = time.Millisecond
	method = "/acme.shop.v1.Shop/Get"
)

// pulse returns a scenario with simple numbers: a second of each kind, and a capacity of 1000 requests a second.
func pulse() *sim.Scenario {
	return &sim.Scenario{
		Title: "pulse", Bucket: 200 * ms, Recovery: sim.Recovery{Success: 0.99, Window: 250 * ms},
		Services: []sim.Service{service1("shop")},
		Fleets:   []sim.Fleet{{Name: "users", Clients: 1, Rate: 1000, Calls: []sim.Call{{Service: "shop", Method: method, Deadline: time.Second}}}},
		Phases: []sim.Phase{
			{Name: "calm", Kind: sim.KindLead, Length: time.Second, Load: 0.5},
			{Name: "pulse", Length: time.Second, Load: 1.5},
			{Name: "after", Kind: sim.KindAfter, Length: time.Second, Load: 0.5},
		},
	}
}

func service1(name string, calls ...sim.Call) sim.Service {
	return sim.Service{
		Name: name, Backends: 4, Workers: 5, Queue: 375, Time: &sim.Distribution{A: 20 * ms},
		Refuse: codes.ResourceExhausted, Calls: calls,
	}
}

// chain returns three services that call each other; the last has a fault.
func chain(fault ...sim.Fault) *sim.Scenario {
	s := pulse()
	s.Services = []sim.Service{
		service1("front", sim.Call{Service: "orders", Method: method}),
		service1("orders", sim.Call{Service: "shop", Method: method}),
		service1("shop"),
	}
	s.Fleets[0].Calls[0].Service = "front"
	s.Phases = []sim.Phase{{Name: "trouble", Length: time.Second, Load: 1, Faults: fault}}
	return s
}

// plain makes one attempt a call.
func plain() Client {
	return Client{Name: "no retries", Options: func() (Options, error) {
		return Options{Dial: []grpc.DialOption{grpc.WithDisableRetry()}}, nil
	}}
}
