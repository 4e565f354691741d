// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/testserver"
)

func TestConnectionsReachAllServers(t *testing.T) {
	t.Parallel()
	const connections = 40 // each begins its round robin anywhere
	synctest.Test(t, func(t *testing.T) {
		c := plain()
		c.Connections = connections
		w, err := newWorld(t.Context(), pulse(), &c)
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		servers := w.services[0].servers
		firsts := make([]int, len(servers)) // how many first calls of a connection each server got
		for _, conn := range w.users.conns {
			for i := range servers {
				if err := conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					firsts[slices.IndexFunc(servers, called)]++
				}
			}
			for k, s := range servers {
				if n := s.Count("*"); n != 1 {
					t.Errorf("server %d got %d of the %d calls of a connection; want one, by turns", k, n, len(servers))
				}
				s.Reset()
			}
		}
		if most := slices.Max(firsts); most > connections/2 {
			t.Errorf("the first calls of all connections went %v times to the servers; want no server to get most of them", firsts)
		}
		if len(w.users.conns) != connections {
			t.Errorf("%d connections; want %d", len(w.users.conns), connections)
		}
	})
}

func called(s *testserver.Server) bool { return s.Count("*") > 0 }
