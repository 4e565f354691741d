// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

func TestConnectionsReachAllServers(t *testing.T) {
	t.Parallel()
	const connections = 40 // each begins its round robin anywhere
	synctest.Test(t, func(t *testing.T) {
		c := plain()
		c.Connections = connections
		w := testkit.Must(newWorld(t.Context(), pulse(), &c))(t)
		defer w.closeAll()
		servers := w.services[0].servers
		firsts := make([]int, len(servers)) // how many first calls of a connection each server got
		for _, conn := range w.users[0].conns {
			for i := range servers {
				testkit.NoError(t, conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}))
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
		if len(w.users[0].conns) != connections {
			t.Errorf("%d connections; want %d", len(w.users[0].conns), connections)
		}
	})
}

// Each process has its own options and connections.
func TestProcessesAskForTheirOwnOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := plain()
		options := c.Options
		c.Processes, c.Connections = 3, 2
		c.Options = func() (Options, error) {
			asked++
			return options()
		}
		w := testkit.Must(newWorld(t.Context(), chain(), &c))(t)
		defer w.closeAll()
		if want := 3 + len(w.services) - 1; asked != want || len(w.users[0].conns) != 6 {
			t.Errorf("%d processes with %d connections of users; want %d with those of the services, and 6", asked,
				len(w.users[0].conns), want)
		}
	})
}

func called(s *testserver.Server) bool { return s.Count("*") > 0 }
