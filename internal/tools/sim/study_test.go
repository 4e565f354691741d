// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
)

// The results of the AWS Architecture Blog at 100 clients, from its text and plots.
func TestStudyAsPublished(t *testing.T) {
	t.Parallel()
	s := AWS()
	s.Clients, s.Repeats = []int{100}, 20
	findings := must.Get(s.Run(t.Context(), nil))(t)
	of := map[string]Finding{}
	for _, f := range findings {
		of[f.Kind] = f
	}
	full, exponential := of["full"], of["exponential"]
	if part := full.Calls / exponential.Calls; part > 0.45 {
		t.Errorf("full jitter needs %.1f %% of the calls without jitter; want 45 %% at most", 100*part)
	}
	if times := exponential.Seconds / full.Seconds; times < 10 {
		t.Errorf("full jitter is %.1f times as fast; want 10 times at least", times)
	}
	for _, order := range []struct {
		what string
		less []string
		by   func(Finding) float64
	}{
		{"calls", []string{"full", "equal", "decorrelated", "exponential", "none"}, func(f Finding) float64 { return f.Calls }},
		{"time", []string{"none", "decorrelated", "full", "equal", "exponential"}, func(f Finding) float64 { return f.Seconds }},
	} {
		for i := 1; i < len(order.less); i++ {
			a, b := of[order.less[i-1]], of[order.less[i]]
			if order.by(a) >= order.by(b) {
				t.Errorf("%s: %s %.1f, %s %.1f; want less", order.what, a.Kind, order.by(a), b.Kind, order.by(b))
			}
		}
	}
}

// One client writes once; two write at most three times.
func TestStudyFewClients(t *testing.T) {
	t.Parallel()
	s := AWS()
	s.Clients, s.Repeats = []int{1, 2}, 20
	findings := must.Get(s.Run(t.Context(), nil))(t)
	for _, f := range findings {
		switch {
		case f.Clients == 1 && (math.Abs(f.Calls-1) > 1e-9 || f.Seconds < 0.035 || f.Seconds > 0.045):
			t.Errorf("%s: one client makes %v calls in %v s; want 1 in four messages of 10 ms", f.Kind, f.Calls, f.Seconds)
		case f.Clients == 2 && (f.Calls <= 2 || f.Calls > 3):
			t.Errorf("%s: two clients make %v calls; want more than 2, since they meet, and 3 at most", f.Kind, f.Calls)
		}
	}
}

// A study can be interrupted, and needs repeats.
func TestStudyInterrupted(t *testing.T) {
	t.Parallel()
	s := AWS()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Run(ctx, func(part float64) {
		if cancel(); part > 1 {
			t.Errorf("%v done", part)
		}
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want %v", err, context.Canceled)
	}
	s.Repeats = 0
	if _, err := s.Run(t.Context(), nil); err == nil || err.Error() != "sim: study with 0 repeats: want at least 1" {
		t.Errorf("error %v", err)
	}
}
