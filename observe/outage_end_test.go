// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
)

// An outage goes on while calls wait, and ends once, also if a call ends at the same moment. A call that ends later begins no other one.
func TestOutages_End(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		l := &logger{write: func(_ context.Context, _ slog.Level, message string, fields ...any) {
			lines = append(lines, fmt.Sprint(message, fields))
		}}
		failed := interceptor.CallEnd{Target: "orders", Code: codes.Unavailable}
		l.waits(t.Context(), interceptor.Event{Target: "orders"})
		time.Sleep(2 * outageQuiet)
		l.hasWaited(interceptor.CallEnd{Target: "orders"})
		l.hasWaited(failed)
		o := l.outages.targets["orders"]
		time.Sleep(3 * outageQuiet)
		l.endOutage("orders", o) // its timer was reset when it had just fired
		l.hasWaited(failed)
		time.Sleep(3 * outageQuiet)
		synctest.Wait()
		const end = "stagger: the server answers again, after calls have waited[target orders since 2000-01-01T00:00:00Z calls 2 saved 1 lasted 10s]"
		if len(lines) != 2 || lines[1] != end {
			t.Errorf("logged %q; want the beginning and %q", lines, end)
		}
	})
}

// The targets beyond a bound count together.
func TestOutages_Bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines atomic.Int64
		l := &logger{write: func(context.Context, slog.Level, string, ...any) { lines.Add(1) }}
		for i := range 2 * maxTopics {
			target := fmt.Sprint("service ", i)
			l.waits(t.Context(), interceptor.Event{Target: target})
			l.hasWaited(interceptor.CallEnd{Target: target})
		}
		if n := len(l.outages.targets); n != maxTopics+1 || l.outages.targets[others].waited != maxTopics {
			t.Errorf("%d outages", n)
		}
		time.Sleep(2 * outageQuiet)
		synctest.Wait()
		if n := lines.Load(); n != 2*(maxTopics+1) || len(l.outages.targets) > 0 {
			t.Errorf("%d lines, and %d outages are left", n, len(l.outages.targets))
		}
	})
}
