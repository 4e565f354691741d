// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
		time.Sleep(outageQuiet * 3 / 2) // not when the end looks whether calls wait still
		l.hasWaited(interceptor.CallEnd{Target: "orders"})
		l.hasWaited(failed)
		l.outages.mu.Lock()
		o := l.outages.targets["orders"]
		l.outages.mu.Unlock()
		time.Sleep(3 * outageQuiet)
		l.endOutage("orders", o) // its timer was reset when it had just fired
		l.hasWaited(failed)
		time.Sleep(3 * outageQuiet)
		synctest.Wait()
		const end = "stagger: the server answers again, after calls have waited[target orders since 2000-01-01T00:00:00Z calls 2 saved 1 lasted 7.5s]"
		if len(lines) != 2 || lines[1] != end {
			t.Errorf("logged %q; want the beginning and %q", lines, end)
		}
	})
}

// The targets beyond a bound count together.
func TestOutages_Bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string // guarded by mu
		l := &logger{write: func(_ context.Context, _ slog.Level, message string, fields ...any) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprint(message, fields))
		}}
		for i := range 2 * maxTopics {
			target := fmt.Sprint("service ", i)
			l.waits(t.Context(), interceptor.Event{Target: target})
			l.hasWaited(interceptor.CallEnd{Target: target})
		}
		time.Sleep(2 * outageQuiet)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		together := fmt.Sprintf("[target %s since 2000-01-01T00:00:00Z calls %d ", others, maxTopics)
		if len(lines) != 2*(maxTopics+1) || strings.Count(strings.Join(lines, "\n"), together) != 1 {
			t.Errorf("%d lines; want two for each of %d targets, and two for the others:\n%s", len(lines), maxTopics, strings.Join(lines, "\n"))
		}
	})
}
