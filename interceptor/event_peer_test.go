// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// TestEventsNameBackends has backends on loopback, since those in memory all have one address.
func TestEventsNameBackends(t *testing.T) {
	t.Parallel()
	j := new(journal)
	r := mustNew(t, mustParse(t, balanced(elsewhere)), withJournal(j), interceptor.WithDecisionLog(), interceptor.WithRandom(func() float64 { return 0 }))
	servers := make([]*testserver.Server, 3)
	for i := range servers {
		servers[i] = testserver.Start(t, testserver.TCP())
	}
	conn, err := testserver.DialAll(servers, r.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for _, s := range servers {
		for s.Count("*") == 0 {
			if err := conn.Invoke(t.Context(), create, &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range servers {
		s.Default(testserver.Fail(codes.Unavailable))
	}
	j.attempts = nil
	// Hedges are sent at once, so that nothing waits.
	_ = conn.Invoke(t.Context(), list, &emptypb.Empty{}, &emptypb.Empty{})
	named := map[string]int{}
	byNumber := map[int]string{}
	for _, a := range j.attempts {
		named[a.Peer.String()]++
		byNumber[a.Number] = a.Peer.String()
	}
	for _, s := range servers {
		if named[s.Addr()] != 1 {
			t.Errorf("%d attempts were at %s; want one at each backend", named[s.Addr()], s.Addr())
		}
	}
	if len(r.Decisions()) == 0 {
		t.Error("nothing was decided")
	}
	for _, d := range r.Decisions() {
		if d.Peer != nil && d.Peer.String() != byNumber[d.Attempt] {
			t.Errorf("the decision after attempt %d names %v; want %s", d.Attempt, d.Peer, byNumber[d.Attempt])
		}
		if d.Peer == nil && !d.TimedOut {
			t.Errorf("the decision after attempt %d names no backend", d.Attempt)
		}
	}
}
