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

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/testserver"
)

func TestReceiveEndsAtHalfClose(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]faults.Move{"Receive": faults.Receive(5), "ReceiveAll": faults.Receive(0)} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, faults.Play(move, faults.Receive(1), faults.Send(text("enough"))))
				w := s.open(t.Context(), t)
				w.send("a", "b")
				synctest.Wait()
				if a := s.Attempts()[0]; a.Sent != 0 || a.HalfClosed {
					t.Errorf("before the half-close the server saw %+v; want it waiting", a)
				}
				w.closeSend()
				w.want("enough")
				w.wantEnd(codes.OK)
				if a := s.Attempts()[0]; a.Received != 2 || !a.HalfClosed {
					t.Errorf("the server saw %+v; want 2 messages and the half-close", a)
				}
			})
		})
	}
}

func TestSendHeaderSendsHeadersAtOnce(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(watch, faults.Play(
			faults.Pause(time.Second),
			faults.SendHeader(metadata.MD{"Shard": {"7"}}),
			faults.Pause(time.Minute)).Then(testserver.Fail(codes.Aborted)))
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
		s.On(watch, faults.Play(faults.Send(text("one"))).Then(testserver.OK().Header(metadata.Pairs("shard", "7"))))
		w := s.open(t.Context(), t)
		w.want("one")
		w.wantEnd(codes.Internal)
	})
}

func TestSendRaw(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		message := []byte(textOf("pong"))
		s.On(watch, faults.Play(faults.SendRaw(message, []byte("\xff"))))
		clear(message) // the move has its own copy
		w := s.open(t.Context(), t)
		w.want("pong")
		w.wantEnd(codes.Internal) // says the client, which cannot decode it
	})
}

func TestEchoEndsAtHalfClose(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]faults.Move{"Echo": faults.Echo(5), "EchoAll": faults.Echo(0)} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(watch, faults.Play(move))
				w := s.open(t.Context(), t)
				w.send("a", "b", "c")
				w.want("a", "b", "c")
				w.closeSend()
				w.wantEnd(codes.OK)
			}, testserver.Keep(0))
		})
	}
}
