// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/testserver"
)

func TestDialAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := []*testserver.Server{testserver.Start(t), testserver.Start(t), testserver.Start(t), testserver.Start(t)}
		conn, err := testserver.DialAll(servers)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		servers[2].On("*", testserver.Fail(codes.Unavailable))
		_ = invoke(t.Context(), conn, get)
		synctest.Wait() // all four are connected
		for _, s := range servers {
			s.Reset()
		}
		failed := 0
		for range 100 {
			if invoke(t.Context(), conn, get).err != nil {
				failed++
			}
		}
		for i, s := range servers {
			if s.Count(get) != 25 {
				t.Errorf("backend %d got %d of 100 calls; want 25", i, s.Count(get))
			}
		}
		if failed != 25 {
			t.Errorf("%d of 100 calls failed; want those of the broken backend", failed)
		}
	})
}

func TestDialAllErrors(t *testing.T) {
	t.Parallel()
	twin := func() *testserver.Server { return testserver.Start(t, testserver.Listener(bufconn.Listen(1))) }
	for _, row := range []struct {
		servers []*testserver.Server
		want    string
	}{
		{nil, "testserver: DialAll without servers: want at least one"},
		{[]*testserver.Server{twin(), twin()}, `testserver: DialAll: two servers named "bufconn": want one name each`},
	} {
		if _, err := testserver.DialAll(row.servers); err == nil || err.Error() != row.want {
			t.Errorf("got error %v; want %s", err, row.want)
		}
	}
}

func TestTargetAndDialOptions(t *testing.T) {
	t.Parallel()
	srv, err := testserver.New()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	conn, err := grpc.NewClient(srv.Target(), srv.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	wantCode(t, invoke(t.Context(), conn, get), codes.OK)
}
