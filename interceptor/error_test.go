// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestError_ReasonAndAttempts(t *testing.T) {
	retry := plain()
	retry.MaxAttempts = 3
	for _, row := range []struct {
		name string
		fail func(t *testing.T, s scene) error
		slog string
	}{
		{
			"after retries", func(t *testing.T, s scene) error {
				_, err := s.call(t.Context(), get)
				return err
			},
			`level=INFO msg=failed err.error=%q err.code=UNAVAILABLE err.reason=attempts_exhausted err.attempts=3 err.elapsed=300ms`,
		},
		{
			"committed", func(t *testing.T, s scene) error {
				stream := s.open(t, t.Context(), serverStream)
				send(t, stream, "order 7")
				_, _ = stream.Header()
				_, err := receive(stream)
				return err
			},
			`level=INFO msg=failed err.error=%q err.code=UNAVAILABLE err.reason=committed err.commit=headers err.attempts=1 err.elapsed=0s`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Unavailable, "restarting").Header(metadata.Pairs("a", "b")))
				err := row.fail(t, s)
				if err == nil {
					t.Fatal("no error")
				}
				text := err.Error()
				var line strings.Builder
				noTime := func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				}
				slog.New(slog.NewTextHandler(&line, &slog.HandlerOptions{ReplaceAttr: noTime})).Info("failed", "err", err)
				if got, want := strings.TrimSpace(line.String()), fmt.Sprintf(row.slog, text); got != want {
					t.Errorf("\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

func TestError_CancelledBackoff(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "the disk is full"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		_, err := s.call(ctx, get)
		servers := status.Error(codes.Unavailable, "the disk is full")
		if status.Code(err) != codes.Canceled || !errors.Is(err, servers) {
			t.Errorf("%v; want CANCELED, and the server's error behind it", err)
		}
	})
}

func TestError(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		st := testkit.Must(status.New(codes.Unavailable, "the disk is full").WithDetails(status.New(codes.DataLoss, "sector 7").Proto()))(t)
		s.On(get, down().Delay(time.Second), down(), down(), testserver.FailStatus(st))
		_, err := s.call(t.Context(), get)
		got, ok := status.FromError(err)
		if !ok || got.Message() != "the disk is full" || len(got.Details()) != 1 || err.Error() != st.Err().Error() {
			t.Errorf("status %v; want the last attempt's own", got)
		}
		e := err.(*interceptor.Error)
		text := "rpc error: code = Unavailable desc = the disk is full"
		if err.Error() != text {
			t.Errorf("%s; want %s", err, text)
		}
		if e.Attempts != 4 || e.Elapsed != 1700*ms || e.Reason != policy.ReasonAttemptsExhausted {
			t.Errorf("%+v", e)
		}
	})
}

// A test of an application makes an error of its own.
func TestError_Fake(t *testing.T) {
	t.Parallel()
	err := error(&interceptor.Error{Reason: policy.ReasonBudgetExhausted, Attempts: 2})
	if got := err.Error(); got != "stagger: budget_exhausted" {
		t.Error(got)
	}
	found, ok := errors.AsType[*interceptor.Error](fmt.Errorf("get order: %w", err))
	if !ok || found.Reason != policy.ReasonBudgetExhausted || status.Code(err) != codes.Unknown || errors.Is(err, context.Canceled) {
		t.Errorf("%v, %s", found, status.Code(err))
	}
	if found.LogValue().Group() == nil {
		t.Error("logs nothing")
	}
}
