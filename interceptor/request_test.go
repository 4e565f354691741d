// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestRequest_WaitForReady(t *testing.T) {
	c := config(plain())
	c.Methods[0].WaitForReady = new(true)
	play(t, c, func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(3*time.Second, s.Up)
		if _, err := s.call(t.Context(), get); err != nil || len(s.attempts) != 1 {
			t.Errorf("%v after %d attempts; want one that waited", err, len(s.attempts))
		}
		s.Down()
		if _, err := s.call(t.Context(), get, grpc.WaitForReady(false)); status.Code(err) != codes.Unavailable {
			t.Errorf("%v; want the call's own option to win", err)
		}
	})
}

func TestRequest_MessageLimits(t *testing.T) {
	t.Parallel()
	c := config(plain())
	c.Methods[0].MaxRequestBytes, c.Methods[0].MaxResponseBytes = new(9), new(9)
	for _, row := range []struct {
		reply string
		opts  []grpc.CallOption
		want  codes.Code
	}{
		{"short", nil, codes.OK}, // "order 7" and "short" are 9 and 7 bytes
		{"too long", nil, codes.ResourceExhausted},
		{"too long", []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}, codes.ResourceExhausted},
		{"short", []grpc.CallOption{grpc.MaxCallSendMsgSize(8)}, codes.ResourceExhausted},
		{"short", []grpc.CallOption{grpc.MaxCallRecvMsgSize(6)}, codes.ResourceExhausted},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, text(row.reply))
				if _, err := s.call(t.Context(), get, row.opts...); status.Code(err) != row.want {
					t.Errorf("%v; want %v", err, row.want)
				}
			})
		})
	}
}
