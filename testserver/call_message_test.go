// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/testserver"
)

func TestStreamIsRecordedInFull(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, faults.Play(faults.Echo(0), faults.Send(text("bye"))).Then(testserver.Fail(codes.Aborted)))
		w := s.open(t.Context(), t)
		w.send("a", "b")
		w.want("a", "b")
		before := s.Attempts()[0]
		if len(before.Requests) != 2 || before.Received != 2 || before.Sent != 2 || before.HalfClosed || !before.End.IsZero() {
			t.Errorf("recorded %+v; want 2 messages each way, and it runs", before)
		}
		w.send("c")
		w.closeSend()
		w.want("c", "bye")
		w.wantEnd(codes.Aborted)
		a := s.Attempts()[0]
		wantText(t, "requests", string(bytes.Join(a.Requests, []byte(","))), textOf("a")+","+textOf("b")+","+textOf("c"))
		wantText(t, "request", string(a.Requests[0]), textOf("a"))
		if a.Received != 3 || a.Sent != 4 || !a.HalfClosed || a.Code != codes.Aborted || len(before.Requests) != 2 {
			t.Errorf("recorded %+v; want 3 messages, 4 sent, the half-close, Aborted", a)
		}
	})
}

func TestRequestsAreKeptUpTo4MiB(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, faults.Play(faults.Receive(0)))
		w := s.open(t.Context(), t)
		for range 5 {
			w.send(strings.Repeat("x", 1<<20-100))
		}
		w.send("small")
		w.closeSend()
		w.wantEnd(codes.OK)
		if a := s.Attempts()[0]; len(a.Requests) != 4 || a.Received != 6 {
			t.Errorf("%d of %d messages are kept; want the first 4 of 6", len(a.Requests), a.Received)
		}
	})
}

func TestUnreadMessagesAreNotCounted(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s = narrow(t, s)
		s.On(watch, faults.Play(faults.Send(tooWide, tooWide, text("held up"))))
		ctx, cancel := context.WithCancel(t.Context())
		_ = s.open(ctx, t)
		synctest.Wait()
		running := s.Attempts()[0].Sent
		cancel()
		synctest.Wait()
		if a := s.Attempts()[0]; running != 3 || a.Sent != 2 || a.Code != codes.Canceled {
			t.Errorf("%d messages while it runs, %d in the end, %v; want 3, 2, Canceled", running, a.Sent, a.Code)
		}
	})
}
