// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/tools/inspect"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

func TestReceiveEndsAtHalfClose(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]moves.Move{"Receive": moves.Receive(5), "ReceiveAll": moves.Receive(0)} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, moves.Play(move, moves.Receive(1), moves.Send(text("enough"))))
				w := s.open(t.Context(), t)
				w.send("a", "b")
				synctest.Wait()
				if a := s.Attempts()[0]; a.Sent != 0 || inspect.HalfClosed(a) {
					t.Errorf("before the half-close the server saw %+v; want it waiting", a)
				}
				w.closeSend()
				w.want("enough")
				w.wantEnd(codes.OK)
				if a := s.Attempts()[0]; a.Received != 2 || !inspect.HalfClosed(a) {
					t.Errorf("the server saw %+v; want 2 messages and the half-close", a)
				}
			})
		})
	}
}

func TestSendHeaderSendsHeadersAtOnce(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, moves.Play(
			moves.Pause(time.Second),
			moves.SendHeader(metadata.MD{"Shard": {"7"}}),
			moves.Pause(time.Minute)).Then(testserver.Fail(codes.Aborted)))
		start := time.Now()
		w := s.open(t.Context(), t)
		header, err := w.Header()
		if err != nil || !slices.Equal(header["shard"], []string{"7"}) || time.Since(start) != time.Second {
			t.Errorf("headers %v, %v after %v; want shard 7 after 1s", header, err, time.Since(start))
		}
		w.wantEnd(codes.Aborted)
		if took := time.Since(start); took != time.Minute+time.Second {
			t.Errorf("failed after %v; want 1m1s", took)
		}
	})
}

func TestSendHeaderTooLate(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, moves.Play(moves.Send(text("one"))).Then(testserver.OK().Header(metadata.Pairs("shard", "7"))))
		w := s.open(t.Context(), t)
		w.want("one")
		w.wantEnd(codes.Internal)
	})
}

func TestSendRaw(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		message := []byte(textOf("pong"))
		s.On(watch, moves.Play(moves.SendRaw(message, []byte("\xff"))))
		clear(message) // the move has its own copy
		w := s.open(t.Context(), t)
		w.want("pong")
		w.wantEnd(codes.Internal) // says the client, which cannot decode it
	})
}

func TestEchoEndsAtHalfClose(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]moves.Move{"Echo": moves.Echo(5), "EchoAll": moves.Echo(0)} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, moves.Play(move))
				w := s.open(t.Context(), t)
				w.send("a", "b", "c")
				w.want("a", "b", "c")
				w.closeSend()
				w.wantEnd(codes.OK)
			}, testserver.Keep(0))
		})
	}
}
