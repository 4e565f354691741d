// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/testserver"
)

func TestEveryConnectionReachesEveryServerFromItsFirstCallOn(t *testing.T) {
	t.Parallel()
	const connections = 40 // each begins its round robin anywhere
	synctest.Test(t, func(t *testing.T) {
		options, err := noRetries(0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := startFleet(t.Context(), storm{}.shape(), connections, options)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		if n := len(f.requests(time.Now())); n != 0 {
			t.Errorf("%d requests before the storm are counted; want none", n)
		}
		firsts := make([]int, len(f.servers)) // how many first calls of a connection each server got
		for _, conn := range f.conns {
			for i := range f.servers {
				if err := conn.Invoke(t.Context(), service+"Get", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					firsts[slices.IndexFunc(f.servers, called)]++
				}
			}
			for k, s := range f.servers {
				if n := s.Count("*"); n != 1 {
					t.Errorf("server %d got %d of the %d calls of a connection; want one, by turns", k, n, len(f.servers))
				}
				s.Reset()
			}
		}
		if most := slices.Max(firsts); most > connections/2 {
			t.Errorf("the first calls of all connections went %v times to the servers; want no server to get most of them", firsts)
		}
	})
}

func called(s *testserver.Server) bool { return s.Count("*") > 0 }
