// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/testserver"
)

func TestDownAndUp(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.Down()
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.Unavailable)
		if want := "testserver: " + strings.TrimPrefix(s.Target(), "passthrough:///") + " is down"; !strings.Contains(a.err.Error(), want) {
			t.Errorf("error %v; want %q", a.err, want)
		}
		time.Sleep(5 * time.Second)
		if got := s.Count("*"); got != 0 {
			t.Errorf("%d attempts arrived at a server that is down", got)
		}
		s.Up()
		a = invokeWaiting(t.Context(), s.conn)
		wantCode(t, a, codes.OK)
		if a.elapsed != 160*ms {
			t.Errorf("back after %v; want 160ms, since the client connects after 1s + 1.6s + 2.56s exactly", a.elapsed)
		}
	})
}

func invokeWaiting(ctx context.Context, conn *grpc.ClientConn) answer {
	var a answer
	start := time.Now()
	a.err = conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
	a.elapsed = time.Since(start)
	return a
}

func TestDownCutsRunningCalls(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		time.AfterFunc(3*time.Second, s.Down)
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.Unavailable)
		if a.elapsed != 3*time.Second {
			t.Errorf("cut after %v; want 3s", a.elapsed)
		}
	})
}

func TestDownOnTCP(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, tcp(t))
	srv.Down()
	s := scene{srv, srv.Dial(t)}
	wantCode(t, s.call(t.Context(), get), codes.Unavailable)
	if got := srv.Count("*"); got != 0 {
		t.Errorf("%d attempts arrived at a server that is down", got)
	}
}
