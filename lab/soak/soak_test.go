// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	length  = flag.Duration("for", 3*time.Second, "how long the chaos lasts")
	seed    = flag.Uint64("seed", 1, "`number` that chance is drawn from; what meets what is up to the machine")
	callers = flag.Int("callers", 8, "`number` of goroutines that call")
	write   = flag.String("write", "", "write the page to this `file`, as Markdown")
)

// An interrupt ends the soak early, and shows the results until then.
func TestSoak(t *testing.T) {
	t.Parallel()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	page := must.Get(soak(ctx, options{*length, *seed, *callers}))(t)
	fmt.Fprintf(t.Output(), "%s", page)
	if page.failed() || page.world.counts.total() == 0 {
		t.Errorf("something was wrong, or no call was made:\n%s", page)
	}
	if *write == "" {
		return
	}
	if err := os.WriteFile(*write, []byte(page.markdown()), 0o644); err != nil {
		t.Error(err)
	}
}

// The soak detects the errors that it looks for.
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
			w := must.Get(newWorld(t.TempDir(), 1))(t)
			defer w.close()
			row.do(w)
			if got := w.settled(); !strings.Contains(got, row.want) {
				t.Errorf("%q; want %q", got, row.want)
			}
		})
	}
}

// An answer to another call is detected.
func TestWrongAnswersAreFound(t *testing.T) {
	t.Parallel()
	w := must.Get(newWorld(t.TempDir(), 1))(t)
	defer w.close()
	wrong := testserver.OK(wrapperspb.String("another/1")).Trailer(map[string][]string{"by": {"a/2"}})
	for _, s := range w.servers {
		s.On(get, wrong)
	}
	for range 20 { // a call may be cancelled early
		w.make(newCall("mine", get))
	}
	lines := strings.Join(w.lines(), "\n")
	for _, want := range []string{"an answer belongs to another call", "an answer comes from two attempts"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is not found:\n%s", want, lines)
		}
	}
}
