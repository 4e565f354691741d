// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

type attempts = grpc.ServerStreamingClient[faultserverv1.WatchAttemptsResponse]

// begin begins to watch attempts.
func (s scene) begin(ctx context.Context, t *testing.T, method string) attempts {
	t.Helper()
	w, err := s.control.WatchAttempts(ctx, &faultserverv1.WatchAttemptsRequest{Method: method})
	if err == nil {
		_, err = w.Header()
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// next are the next n attempts.
func next(t *testing.T, w attempts, n int) string {
	t.Helper()
	var list []string
	for range n {
		r, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		a := r.GetAttempt()
		list = append(list, strings.TrimSpace(fmt.Sprint(a.GetSerial(), " ", a.GetCode())))
	}
	return strings.Join(list, ", ")
}

func TestWatchAttempts(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		s.script(t, list, `{"fail": {"code": "ABORTED"}}`)
		s.call(t.Context(), get) // before the watch
		ctx, cancel := context.WithCancel(t.Context())
		all, some := s.begin(ctx, t, ""), s.begin(ctx, t, list)
		s.call(t.Context(), get)
		s.call(t.Context(), list)
		wantText(t, "all", next(t, all, 4), "2, 2 OK, 3, 3 ABORTED")
		wantText(t, "some", next(t, some, 2), "3, 3 ABORTED")
		cancel()
		if _, err := all.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("got %v; want CANCELLED", err)
		}
		synctest.Wait()
		s.call(t.Context(), get) // nobody watches
	})
}

func TestWatchAttemptsFallsBehind(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		slow := s.begin(t.Context(), t, "")
		for range 4000 {
			if a := s.call(t.Context(), get); a.err != nil || a.elapsed != 0 {
				t.Fatalf("got %v after %v", a.err, a.elapsed)
			}
		}
		seen := 0
		for {
			r, err := slow.Recv()
			if err != nil {
				if status.Code(err) != codes.ResourceExhausted || errors.Is(err, io.EOF) {
					t.Errorf("got %v; want RESOURCE_EXHAUSTED", err)
				}
				break
			}
			if seen++; int(r.GetAttempt().GetSerial()) != (seen+1)/2 {
				t.Fatalf("attempt %d as number %d of the watch; want none left out", r.GetAttempt().GetSerial(), seen)
			}
		}
		if seen < 1024 || seen >= 8000 {
			t.Errorf("saw %d; want at least what may wait, and not all", seen)
		}
	})
}

func TestWatchAttemptsErrors(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		w, err := s.control.WatchAttempts(t.Context(), &faultserverv1.WatchAttemptsRequest{Method: "GetOrder"})
		if err == nil {
			_, err = w.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v; want INVALID_ARGUMENT", err)
		}
	})
}

func TestWatchAttemptsEndsWithServer(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		w := s.begin(t.Context(), t, "")
		s.Close()
		if _, err := w.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v; want UNAVAILABLE", err)
		}
	})
}
