// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
)

// An outage ends once, also if a call ends at the same moment, and a call that ends later begins no other one.
func TestOutages_End(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		l := &logger{write: func(_ context.Context, _ slog.Level, message string, _ ...any) { lines = append(lines, message) }}
		waited := interceptor.CallEnd{Target: "orders", Code: codes.Unavailable}
		l.waits(t.Context(), interceptor.Event{Target: "orders"})
		l.hasWaited(waited)
		l.outages.mu.Lock()
		time.Sleep(outageQuiet) // now the end waits for the lock
		l.outages.targets["orders"].quiet.Reset(outageQuiet)
		l.outages.mu.Unlock()
		time.Sleep(3 * outageQuiet)
		l.hasWaited(waited)
		time.Sleep(3 * outageQuiet)
		synctest.Wait()
		if len(lines) != 2 || lines[1] != "stagger: calls have waited for an answer in vain" {
			t.Errorf("logged %q; want the beginning and the end", lines)
		}
	})
}
