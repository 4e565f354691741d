// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/testkit"
)

const ms = time.Millisecond

// A queue slows the work in proportion to its length when the work begins.
func TestThrash(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Queue, s.Services[0].Thrash = 4, 3
	_, took := Trace(t, s, []time.Duration{0, 0, 0})
	// The second begins while one of four waits, and takes 1 + 2/4 times as long.
	if want := []time.Duration{100 * ms, 250 * ms, 350 * ms}; !slices.Equal(took, want) {
		t.Errorf("the calls took %v; want %v", took, want)
	}
}

// The first request of a process costs the work of a connection, and again after the backend was down.
func TestConnect(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Connect = 2
	s.Phases = []Phase{
		{Length: time.Second, Load: 1},
		{Length: time.Second, Load: 1, Faults: []Fault{{Service: "shop", Down: true}}},
		{Length: time.Second, Load: 1},
	}
	_, took := Trace(t, s, []time.Duration{0, 500 * ms, 1500 * ms, 2100 * ms, 2500 * ms})
	if want := []time.Duration{300 * ms, 100 * ms, 0, 300 * ms, 100 * ms}; !slices.Equal(took, want) {
		t.Errorf("the calls took %v; want %v", took, want)
	}
}

// A cache comes to the balance between what expires and what awaited requests fill, and without awaited requests it stays empty.
func TestCache(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers, s.Services[0].Cache = 1000, &Cache{Entries: 100, TTL: 10 * time.Second, Hit: &Distribution{A: ms}}
	s.Fleets[0].Rate = 40
	s.Phases = []Phase{{Kind: KindLead, Length: time.Minute, Load: 1}, {Length: 5 * time.Minute, Load: 1}}
	s.Bucket = time.Second
	// Of 100 entries, 10 h expire a second, and 40 (1 - h) (1 - h) are filled: h is 0.6096.
	want := 0.6096*1 + 0.3904*100
	if mean := play(t, s, Options{}).Runs[0].Fleets[0].Mean; math.Abs(float64(mean)/1e6-want) > 2 {
		t.Errorf("the calls took %v on average; want %.1f ms", mean, want)
	}
	s.Fleets[0].Calls[0].Deadline = 50 * ms
	s.Phases[1].Faults = []Fault{{Service: "shop", Flush: true}}
	if f := play(t, s, Options{}).Runs[0].Fleets[0]; f.Success > 0.001 {
		t.Errorf("success %v with an empty cache, and less time than a miss takes; want 0", f.Success)
	}
}

// A request that has waited for longer than the interval is refused, and for longer than the target if the queue has not been empty
// for an interval.
func TestCoDel(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Queue, s.Services[0].CoDel = 10, &CoDel{Target: 50 * ms, Interval: 250 * ms}
	_, took := Trace(t, s, []time.Duration{0, 0, 0, 0, 0})
	// At 300 ms the fourth has waited for too long, and so has the fifth.
	if want := []time.Duration{100 * ms, 200 * ms, 300 * ms, 300 * ms, 300 * ms}; !slices.Equal(took, want) {
		t.Errorf("the calls took %v; want %v", took, want)
	}
	// Calls in pairs, of which one waits: the queue is empty in between, so 100 ms are not too long.
	_, took = Trace(t, s, []time.Duration{0, 0, 500 * ms, 500 * ms})
	if want := []time.Duration{100 * ms, 200 * ms, 100 * ms, 200 * ms}; !slices.Equal(took, want) {
		t.Errorf("the calls took %v; want %v", took, want)
	}
}

// Attempts above the limit of their process wait in the client, and those whose call has ended meanwhile are never sent.
func TestLimit(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers, s.Fleets[0].Calls[0].Limit = 10, 2
	requests, took := Trace(t, s, []time.Duration{0, 0, 0, 0, 150 * ms})
	if want := []time.Duration{0, 0, 100 * ms, 100 * ms, 200 * ms}; !slices.Equal(requests, want) {
		t.Errorf("requests at %v; want %v", requests, want)
	}
	if want := []time.Duration{100 * ms, 100 * ms, 200 * ms, 200 * ms, 150 * ms}; !slices.Equal(took, want) {
		t.Errorf("the calls took %v; want %v", took, want)
	}
	hedge := testkit.Must(NewPolicy(
		`methodConfig: [{name: [{service: a.B}], hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.01s, budget: NONE}}]`))(t)
	s.Policies = map[string]*Policy{"hedge": hedge}
	s.Fleets[0].Calls[0].Policy, s.Fleets[0].Calls[0].Method, s.Fleets[0].Calls[0].Limit = "hedge", "/a.B/C", 1
	requests, _ = Trace(t, s, []time.Duration{0, 200 * ms})
	if want := []time.Duration{0, 200 * ms}; !slices.Equal(requests, want) {
		t.Errorf("requests at %v; want %v: each hedge waits until its call has ended", requests, want)
	}
}

// A fault of a method leaves other methods alone.
func TestMethodFault(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers = 1000
	s.Fleets[0].Rate = 100
	s.Fleets[0].Calls = []Call{
		{Service: "shop", Method: "/a.B/C", Deadline: time.Second}, {Service: "shop", Method: "/a.B/D", Deadline: time.Second},
	}
	s.Phases[0].Faults = []Fault{{Service: "shop", Method: "/a.B/D", Down: true, Code: codes.Unavailable}, {Service: "shop", Slower: 2}}
	r := play(t, s, Options{}).Runs[0].Fleets[0]
	if r.ByCall[0].Success != 1 || r.ByCall[1].Success != 0 || r.P99 < 200*ms || r.P99 > 202*ms {
		t.Errorf("success %v and %v, p99 %v; want 1, 0 and 200ms", r.ByCall[0].Success, r.ByCall[1].Success, r.P99)
	}
}

// Several faults fail parts of the requests, with work or without it.
func TestFlaky(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers = 1000
	s.Fleets[0].Rate = 500
	s.Phases[0].Faults = []Fault{
		{Service: "shop", Flaky: 0.6, AtOnce: true, Code: codes.NotFound}, {Service: "shop", Flaky: 0.5, Code: codes.NotFound},
	}
	r := play(t, s, Options{}).Runs[0]
	if f := r.Fleets[0]; math.Abs(f.Success-0.2) > 0.02 || f.P50 != 0 || f.P95 < 100*ms || f.P95 > 101*ms {
		t.Errorf("success %v, p50 %v, p95 %v; want 0.2, 0s and 100ms", f.Success, f.P50, f.P95)
	}
	if v := r.Services[0]; math.Abs(Ratio(v.Served, v.Requests)-0.4) > 0.02 {
		t.Errorf("%d of %d requests were worked on; want 0.4", v.Served, v.Requests)
	}
}

// Another seed of the services changes what they draw, and no call.
func TestServiceSeed(t *testing.T) {
	t.Parallel()
	s := small()
	s.Services[0].Workers, s.Services[0].Time.Shape = 1000, ShapeExponential
	s.Fleets[0].Rate = 100
	s.Variants = []Variant{{Name: "as it is"}, {Name: "the same", ServiceSeed: 0}, {Name: "another", ServiceSeed: 1}}
	r := play(t, s, Options{}).Runs
	own, same, other := r[0].Fleets[0], r[1].Fleets[0], r[2].Fleets[0]
	if own.Mean != same.Mean || own.Mean == other.Mean || !slices.Equal(own.Begun, other.Begun) {
		t.Errorf("mean %v, %v with the same and %v with another seed; calls %v and %v", own.Mean, same.Mean, other.Mean,
			own.Begun, other.Begun)
	}
}
