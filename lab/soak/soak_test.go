// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSoak(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := command(t.Context(), []string{"-for", "3s", "-callers", "8"}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "Nothing was wrong") {
		t.Errorf("the page says:\n%s", &out)
	}
}

func TestSoakFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-for", "1ms"}, {"-callers", "0"}, {"more"}} {
		if err := command(t.Context(), args, new(strings.Builder)); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// What the soak looks for is found.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		do   func(*world)
		want string
	}{
		"a permit that is kept": {func(w *world) {
			w.ledger.Observe(time.Now(), budget.EventCallStarted)
			_, _ = w.ledger.Withdraw(time.Now(), budget.KindFailure, 1)
		}, "1 permits are out"},
		"an event that is missing": {func(w *world) { w.begun.Add(1) }, "1 calls that began and 0 that ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := newWorld(t.TempDir(), 1)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			row.do(w)
			if got := w.settled(); !strings.Contains(got, row.want) {
				t.Errorf("%q; want %q", got, row.want)
			}
		})
	}
}

// An answer that belongs to another call is found.
func TestWrongAnswersAreFound(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	wrong := testserver.OK(wrapperspb.String("another/1")).Trailer(map[string][]string{"by": {"a/2"}})
	for _, s := range w.servers {
		s.On(get, wrong)
	}
	c := &call{id: "mine", method: get}
	for range 20 { // chance may cancel a call early
		c.finished.Store(0)
		w.make(c)
	}
	lines := strings.Join(w.lines(), "\n")
	for _, want := range []string{"an answer belongs to another call", "an answer comes from two attempts"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is not found:\n%s", want, lines)
		}
	}
}
