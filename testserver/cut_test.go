// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/testserver"
)

func TestCutComesInTheMiddleOfAMessage(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, faults.Play(
			faults.Receive(1),
			faults.SendHeader(metadata.Pairs("shard", "7")),
			faults.Send(text("one"), text("two")),
			faults.Cut()))
		start := time.Now()
		for range 20 {
			w := s.open(t.Context(), t)
			w.send("a")
			w.want("one", "two")
			w.wantEnd(codes.Unavailable)
			if header, err := w.Header(); err != nil || len(header["shard"]) != 1 {
				t.Errorf("headers %v, %v; want the move's", header, err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v; want no time", took)
		}
		synctest.Wait()
		a := s.Attempts()[19]
		if a.Code != codes.Unavailable || a.Cancelled || a.Sent != 2 || a.Conn != 20 {
			t.Errorf("the server saw %+v; want UNAVAILABLE after 2 messages, each on a new connection", a)
		}
	})
}

// narrow is a scene with flow control that does not adapt, and tooWide a message that it holds up.
func narrow(t *testing.T, s scene) scene {
	t.Helper()
	return scene{s.Server, s.Dial(t, grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))}
}

var tooWide = text(strings.Repeat("x", 80<<10))

func TestCutOfClientThatDoesNotRead(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s = narrow(t, s)
		s.On(watch, faults.Play(faults.Send(tooWide), faults.Cut()))
		_ = s.open(t.Context(), t)
		time.Sleep(time.Second)
		if a := s.Attempts()[0]; a.Code != codes.Unavailable || a.End.Sub(a.Time) != 100*ms {
			t.Errorf("the server saw %+v; want it cut after 100ms", a)
		}
	})
}

func TestCutAfterClientIsGone(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s = narrow(t, s)
		s.On(watch, faults.Play(faults.Send(tooWide), faults.Cut()))
		ctx, cancel := context.WithCancel(t.Context())
		_ = s.open(ctx, t)
		time.AfterFunc(7*ms, cancel)
		time.Sleep(time.Second)
		if a := s.Attempts()[0]; a.Code != codes.Canceled || !a.Cancelled || a.End.Sub(a.Time) != 7*ms {
			t.Errorf("the server saw %+v; want it cancelled after 7ms", a)
		}
		s.On(watch, faults.Play(faults.Echo(0)))
		w := s.open(t.Context(), t)
		w.send("a")
		w.want("a")
		w.closeSend()
		w.wantEnd(codes.OK)
		if got := s.Attempts()[1].Conn; got != 1 {
			t.Errorf("the next call came on connection %d; want the same, which was not cut", got)
		}
	})
}

// veiled credentials say that they encrypt.
type veiled struct {
	credentials.TransportCredentials
}

func (v veiled) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, _, err := v.TransportCredentials.ServerHandshake(conn)
	return conn, veiled{}, err
}

func (veiled) AuthType() string { return "veiled" }

func TestCutOfEncryptedConnection(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, faults.Play(faults.Send(text("one")), faults.Cut()))
		start := time.Now()
		w := s.open(t.Context(), t)
		w.want("one")
		w.wantEnd(codes.Unavailable)
		if took := time.Since(start); took != 100*ms {
			t.Errorf("took %v; want 100ms", took)
		}
	}, testserver.ServerOptions(grpc.Creds(veiled{insecure.NewCredentials()})))
}
