// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// check compares what happened with what may happen.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	last := m.Count(get)
	told := fmt.Sprintf("attempts %v; sender %v, receiver %v; got %v, header of %q, %v (%s) after %d attempts",
		m.attempts, m.sends, m.receives, m.got, m.header, m.end, reasonOf(m.end), last)
	if last > 4 {
		t.Fatalf("%d attempts: %s", last, told)
	}
	script := m.script(last)
	if want := script.sent(last); len(m.got) > len(want) || !slices.Equal(m.got, want[:len(m.got)]) {
		t.Fatalf("got %v of %v: %s", m.got, want, told)
	}
	if m.end == io.EOF && (script.end != "ok" || len(m.got) != len(script.sent(last))) {
		t.Fatalf("success of a stream that was cut: %s", told)
	}
	if len(m.header) > 1 && m.header != fmt.Sprint(last, "-") {
		t.Fatalf("headers of another attempt than %d: %s", last, told)
	}
	m.checkServer(t, told)
	if len(m.calls) != 1 || m.finished != 1 || m.retrier.Replayed() != 0 {
		t.Fatalf("told of %+v, OnFinish called %d times, %d bytes kept: %s", m.calls, m.finished, m.retrier.Replayed(), told)
	}
	m.checkEnd(t, told)
}

// checkServer checks that each attempt heard the beginning of what was sent.
func (m *model) checkServer(t *rapid.T, told string) {
	for i, a := range m.Attempts() {
		heard := m.heard(i)
		if len(heard) > len(m.sent) || !slices.Equal(heard, m.sent[:len(heard)]) {
			t.Fatalf("attempt %d heard %v of %v: %s", i+1, heard, m.sent, told)
		}
		if a.HalfClosed && len(heard) < m.accepted {
			t.Fatalf("attempt %d heard %v of %d messages before the close: %s", i+1, heard, m.accepted, told)
		}
	}
}

// checkEnd checks that a failure was final only where it had to be. An attempt on a connection that
// was dropped may not have reached the server.
func (m *model) checkEnd(t *rapid.T, told string) {
	made, heard, stopped := m.calls[0].Attempts, m.Count(get), 0
	for _, e := range m.journal.attempts {
		if e.Place == interceptor.PlaceCancelled {
			stopped++ // maybe as it was sent
		}
	}
	cut := slices.ContainsFunc(m.attempts, func(a attemptScript) bool { return a.end == "drop" || a.end == "cut" })
	if made < heard || made > heard+stopped && !cut {
		t.Fatalf("%d attempts were made, %d arrived: %s", made, heard, told)
	}
	seen := len(m.got) > 0 || m.header != "" || strings.Contains(fmt.Sprint(m.sends, m.receives), "context")
	if reasonOf(m.end) == policy.ReasonCommitted && !seen {
		t.Fatalf("committed to an attempt that nobody has seen: %s", told)
	}
	if status.Code(m.end) == codes.Unavailable && !seen && made < 4 {
		t.Fatalf("given up without need: %s", told)
	}
}
