// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/testkit"
)

func example(t *testing.T, name string) *Scenario {
	t.Helper()
	return testkit.Must(Load("../../cmd/stagger/scenarios/" + name + ".yaml"))(t)
}

func text(t *testing.T, r *Result) string {
	t.Helper()
	b := testkit.Must(json.Marshal(r))(t)
	return string(b)
}

// One seed gives one result, however many variants run in parallel.
func TestRunSeed(t *testing.T) {
	t.Parallel()
	s := example(t, "chain")
	s.Phases = s.Phases[:2]
	s.Phases[0].Length, s.Phases[1].Length = time.Second, 2*time.Second
	first := text(t, play(t, s, Options{Parallel: 1}))
	if second := text(t, play(t, s, Options{Parallel: 3})); second != first {
		t.Error("the same seed gave another result")
	}
	if other := text(t, play(t, s, Options{Seed: 2})); other == first {
		t.Error("another seed gave the same result")
	}
}

// An overload caused by retries stays until a budget ends it.
func TestRunOverload(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	r := play(t, example(t, "overload"), Options{})
	none, unlimited, limited := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0], r.Runs[2].Fleets[0]
	if unlimited.Recovery.State != RecoveryNever || unlimited.Success > 0.2 {
		t.Errorf("without a budget: recovery %v, success %.2f; want none", unlimited.Recovery, unlimited.Success)
	}
	if later := limited.Recovery.Took - none.Recovery.Took; later > time.Second || limited.Success < none.Success-0.04 {
		t.Errorf("with a budget: recovery %v, success %.2f; want about %v and %.2f, as without retries", limited.Recovery, limited.Success, none.Recovery, none.Success)
	}
}

// Three layers of three attempts make 27 requests, unless only one layer retries.
func TestRunChain(t *testing.T) {
	t.Parallel()
	r := play(t, example(t, "chain"), Options{})
	for i, want := range [][]float64{{1, 1, 1}, {3, 9, 27}, {1, 1, 3}} {
		for k, v := range r.Runs[i].Services {
			if v.PerCall < want[k]*0.995 || v.PerCall > want[k]*1.005 {
				t.Errorf("%s: %.3f requests for each call at %s; want %v", r.Runs[i].Name, v.PerCall, v.Name, want[k])
			}
		}
	}
}

// The reserve of many small clients limits nothing.
func TestRunReserve(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	r := play(t, example(t, "reserve"), Options{})
	few, many, small := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0], r.Runs[2].Fleets[0]
	if few.PerCall > 1.12 || small.PerCall > 1.12 || many.PerCall < 1.5 {
		t.Errorf("requests per call: %.2f by 10 clients, %.2f by 10,000, %.2f with a small reserve; want at most 1.12, 1.5 or more, at most 1.12",
			few.PerCall, many.PerCall, small.PerCall)
	}
	if few.Clients != 10 || many.Clients != 10_000 {
		t.Errorf("%d and %d clients; want 10 and 10,000", few.Clients, many.Clients)
	}
}

func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	s := small()
	s.Fleets[0].Rate = 10_000 // so many events that it looks whether to go on
	if _, err := s.Run(ctx, Options{}); !errors.Is(err, stop) {
		t.Errorf("error %v; want %v", err, stop)
	}
}
