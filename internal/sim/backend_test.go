// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/testkit"
)

// small is a scenario with one client and one backend, in which nothing happens by itself.
func small() *Scenario {
	return &Scenario{
		Title: "small", Seed: 1, Bucket: 100 * time.Millisecond, Recovery: Recovery{0.99, 250 * time.Millisecond},
		Services: []Service{{Name: "shop", Backends: 1, Workers: 1, Time: &Distribution{A: 100 * time.Millisecond}, Refuse: codes.ResourceExhausted, Guard: true}},
		Fleets:   []Fleet{{Name: "users", Clients: 1, Calls: []Call{{Service: "shop", Deadline: time.Minute}}}},
		Phases:   []Phase{{Name: "all", Length: 10 * time.Second, Load: 1}},
	}
}

func play(t *testing.T, s *Scenario, o Options) *Result {
	t.Helper()
	return testkit.Must(s.Run(t.Context(), o))(t)
}

// erlang returns the mean wait in an M/M/c queue: Poisson arrivals, exponential service times, c workers.
func erlang(rate, mean float64, c int) float64 {
	load := rate * mean
	term, sum := 1.0, 1.0
	for k := 1; k < c; k++ {
		term *= load / float64(k)
		sum += term
	}
	term *= load / float64(c)
	waits := term / (1 - load/float64(c))
	return waits / (sum + waits) / (float64(c)/mean - rate)
}

// Requests wait in a queue as long as theory predicts.
func TestBackendQueueTime(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, row := range []struct {
		workers int
		rate    float64
		length  time.Duration
	}{{1, 60, 1500 * time.Second}, {4, 300, 300 * time.Second}, {20, 1700, 60 * time.Second}} {
		s := small()
		s.Services[0].Workers, s.Services[0].Queue = row.workers, 1_000_000
		s.Services[0].Time = &Distribution{Shape: ShapeExponential, A: 10 * time.Millisecond}
		s.Fleets[0].Rate = row.rate
		s.Phases = []Phase{{Kind: KindLead, Length: 20 * time.Second, Load: 1}, {Length: row.length, Load: 1}}
		s.Bucket = time.Second
		got := play(t, s, Options{}).Runs[0].Fleets[0].Mean.Seconds()
		want := erlang(row.rate, 0.01, row.workers) + 0.01
		if math.Abs(got-want) > 0.04*want {
			t.Errorf("%d workers, %v calls/s: %.5f s in the service; want %.5f s", row.workers, row.rate, got, want)
		}
	}
}

// A request that arrives at a slow backend is slow, even if the backend recovers before its work ends.
func TestBackendSlowIntoTheNextPhase(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Queue = 1
	slow := Fault{Service: "shop", Slow: &Slow{Part: 1, By: &Distribution{A: time.Second}}}
	s.Phases = []Phase{{Length: 150 * time.Millisecond, Load: 1, Faults: []Fault{slow}}, {Length: 5 * time.Second, Load: 1}}
	_, took := Trace(t, s, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond})
	want := []time.Duration{1100 * time.Millisecond, 1100 * time.Millisecond, 100 * time.Millisecond}
	if !slices.Equal(took, want) {
		t.Errorf("the calls took %v; want %v", took, want)
	}
}

// Every request is served, refused or dropped.
func TestBackendRequests(t *testing.T) {
	t.Parallel()
	for i, abandoned := range []Abandoned{AbandonedServe, AbandonedDrop, AbandonedServe, AbandonedDrop} {
		s := small()
		s.Services[0].Queue, s.Services[0].Abandoned, s.Services[0].Order = 30, abandoned, Order(i/2)
		s.Services[0].Time = &Distribution{Shape: ShapeExponential, A: 10 * time.Millisecond}
		s.Fleets[0].Rate, s.Fleets[0].Calls[0].Deadline = 150, 200*time.Millisecond
		r := play(t, s, Options{}).Runs[0]
		v, f := r.Services[0], r.Fleets[0]
		if got := v.Served + v.Refused + v.Dropped; got != v.Requests || v.Requests != f.Calls {
			t.Errorf("%v: %d calls, %d requests, of which %d served, %d refused, %d dropped", abandoned, f.Calls, v.Requests, v.Served, v.Refused, v.Dropped)
		}
		if i < 2 && (v.Refused == 0 || (v.Dropped > 0) != (abandoned == AbandonedDrop) || (v.Wasted > v.Served/2) != (abandoned == AbandonedServe)) {
			t.Errorf("%v: %d refused, %d dropped, %d of %d wasted", abandoned, v.Refused, v.Dropped, v.Wasted, v.Served)
		}
		if f.Unfinished != 0 || total(f.Begun) != f.Calls || total(v.Arrivals) != v.Requests {
			t.Errorf("%v: %d unfinished, %d of %d calls and %d of %d requests in the series", abandoned, f.Unfinished, total(f.Begun), f.Calls, total(v.Arrivals), v.Requests)
		}
	}
}

// A queue has four requests. The first clients to leave come early in one order and late in the other.
func TestBackendOrder(t *testing.T) {
	t.Parallel()
	for order, want := range map[Order][]int{ // ms
		OrderFIFO: {100, 190, 280, 370},
		OrderLIFO: {100, 390, 280, 170},
	} {
		s := small()
		s.Services[0].Queue, s.Services[0].Order = 10, order
		_, took := Trace(t, s, []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond})
		if !slices.EqualFunc(took, want, func(is time.Duration, ms int) bool { return is == time.Duration(ms)*time.Millisecond }) {
			t.Errorf("order %d: the calls took %v; want %v ms", order, took, want)
		}
	}
}

// Calls of unequal cost keep the same workers busy.
func TestBackendWork(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Queue = 1_000_000
	s.Services[0].Time = &Distribution{A: 10 * time.Millisecond}
	s.Fleets[0].Rate = 100
	s.Fleets[0].Calls = append(s.Fleets[0].Calls, Call{Service: "shop", Deadline: time.Minute, Work: 5})
	v := play(t, s, Options{}).Runs[0].Services[0]
	served := v.Requests - v.Held[len(v.Held)-1]
	if served < 310 || served > 355 {
		t.Errorf("%d served in 10 s; want 333, since half of them take 50 ms", served)
	}
	s.Fleets[0].Calls[1].Work, s.Phases[0].Faults = 1e6, []Fault{{Service: "shop", Slower: 1e6}}
	s.Services[0].Time.A = time.Hour
	if v := play(t, s, Options{}).Runs[0].Services[0]; v.Held[len(v.Held)-1] != v.Requests {
		t.Errorf("%d of %d requests in hand; want all of them: their work ends after years", v.Held[len(v.Held)-1], v.Requests)
	}
}

// Fewer or slower workers reduce the capacity.
func TestBackendCapacity(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers, s.Services[0].Queue = 4, 1_000_000
	s.Fleets[0].Rate = 200
	s.Phases[0].Faults = []Fault{{Service: "shop", Workers: new(3)}, {Service: "shop", Slower: 2}}
	v := play(t, s, Options{}).Runs[0].Services[0]
	if v.Capacity[10] != 15 { // 3 workers that take 200 ms
		t.Errorf("capacity %v; want 15", v.Capacity[10])
	}
	served := v.Requests - v.Held[len(v.Held)-1]
	if served < 145 || served > 150 {
		t.Errorf("%d served in 10 s; want 15 a second, all but those with the workers", served)
	}
}

func total(buckets []int) int {
	n := 0
	for _, v := range buckets {
		n += v
	}
	return n
}

const elsewhereScenario = `
title: one of four fails
policies: {same: same.yaml, elsewhere: elsewhere.yaml, behind: behind.yaml}
services: [{name: shop, backends: 4, workers: 20, time: 10ms, queue: 100}]
fleets:
  - name: users
    rate: 400
    calls: {service: shop, method: /acme.shop.v1.Shop/Get, policy: same, deadline: 2s, connections: 2}
variants: [{name: same}, {name: elsewhere, policy: elsewhere}, {name: behind, policy: behind}]
phases:
  - {name: one down, length: 20s, faults: [{service: shop, backends: [2], down: true}]}
`

const elsewhereRetry = `
budgets: [{name: all, bucket: {size: 1000, perSuccess: 10}}]
methodConfig:
- name: [{service: acme.shop.v1.Shop, method: Get}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], firstRetry: AT_ONCE, budget: all}
`

const elsewhereConfig = `{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}`

func withPolicies(t *testing.T, files map[string]string) *Scenario {
	t.Helper()
	s := testkit.Must(Parse("s.yaml", []byte(elsewhereScenario), func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}))(t)
	return s
}

func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	r := play(t, withPolicies(t, map[string]string{
		"same.yaml":      elsewhereRetry,
		"elsewhere.yaml": "loadBalancingConfig: [" + elsewhereConfig + ", {round_robin: {}}]" + elsewhereRetry,
		"behind.yaml":    "loadBalancingConfig: [{round_robin: {}}, " + elsewhereConfig + "]" + elsewhereRetry,
	}), Options{})
	same, elsewhere, behind := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0], r.Runs[2].Fleets[0]
	// No call needs a second retry, which would wait.
	if elsewhere.Success != 1 || elsewhere.PerCall > 1.34 || elsewhere.P999 > 12*time.Millisecond {
		t.Errorf("elsewhere: success %.4f, %.3f attempts per call, p999 %v; want 1, at most 1.34, at most 12ms", elsewhere.Success, elsewhere.PerCall, elsewhere.P999)
	}
	if same.P999 < 50*time.Millisecond {
		t.Errorf("without it: p999 %v; want that of calls that failed twice, and waited", same.P999)
	}
	if behind.PerCall != same.PerCall || behind.P999 != same.P999 {
		t.Errorf("round_robin stands first in the list: %.3f attempts per call; want %.3f, as without it", behind.PerCall, same.PerCall)
	}
}

// A third of the backends, which follow each other in the list, is down. If two clients of six calls a second retried at one after the
// other, they would spend their budget there.
func TestRetryElsewhere_FailedZone(t *testing.T) {
	t.Parallel()
	const retry = "\nmethodConfig:\n- name: [{service: acme.shop.v1.Shop, method: Get}]\n  retryPolicy: " +
		"{maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}\n"
	files := map[string]string{"same.yaml": retry, "elsewhere.yaml": "loadBalancingConfig: [" + elsewhereConfig + "]" + retry}
	s := testkit.Must(Parse("s.yaml", []byte(`
title: a zone fails
policies: {same: same.yaml, elsewhere: elsewhere.yaml}
services: [{name: shop, backends: 12, workers: 20, time: 10ms, queue: 100}]
fleets: [{name: users, clients: 2, rate: 12, calls: {service: shop, method: /acme.shop.v1.Shop/Get, policy: same, deadline: 2s}}]
variants: [{name: same}, {name: elsewhere, policy: elsewhere}]
phases: [{name: a zone is down, length: 300s, faults: [{service: shop, backends: [4, 5, 6, 7], down: true}]}]
`), func(name string) ([]byte, error) { return []byte(files[name]), nil }))(t)
	r := play(t, s, Options{})
	same, elsewhere := r.Runs[0].Fleets[0].Success, r.Runs[1].Fleets[0].Success
	if elsewhere < 0.97 || elsewhere < same {
		t.Errorf("%.3f succeed elsewhere, %.3f without; want at least 0.97", elsewhere, same)
	}
}

func TestRetryElsewhereRefused(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`[{stagger_retry_elsewhere: {childPolicy: [{least_request_experimental: {}}]}}]`: "its childPolicy lists no round_robin",
		`[{outlier_detection_experimental: {childPolicy: [` + elsewhereConfig + `]}}]`:   "the list has neither at its top",
		`[{stagger_retry_elsewhere: {childPolicy: [{a: {}}, {pick_first: {}}]}}]`:        "its childPolicy lists no round_robin",
	} {
		text := "loadBalancingConfig: " + config + elsewhereRetry
		s := withPolicies(t, map[string]string{"same.yaml": text, "elsewhere.yaml": text, "behind.yaml": text})
		_, err := s.Run(context.Background(), Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "sim: same.yaml:1:22: loadBalancingConfig: the simulator supports round_robin") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", config, err, want)
		}
	}
}
