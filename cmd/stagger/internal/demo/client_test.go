// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/testserver"
)

func TestLoop(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		loop loop
		step testserver.Step
		want string // between attempts
	}{
		"no wait":                 {loop{}, down(), "[0s 0s 0s]"},
		"exponential":             {loop{initial: 100 * ms}, down(), "[100ms 200ms 400ms]"},
		"after attempt timeouts":  {loop{}, testserver.Hang(), "[200ms 200ms 200ms]"},
		"not for other failures":  {loop{}, testserver.Fail(codes.InvalidArgument), "[]"},
		"not when it is answered": {loop{}, testserver.OK(), "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(orders.GetOrder, row.step)
				conn := server.Dial(t, row.loop.options()...)
				_ = conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{})
				synctest.Wait()
				waits := []time.Duration{}
				seen := server.Attempts()
				for i := 1; i < len(seen); i++ {
					waits = append(waits, seen[i].Time.Sub(seen[i-1].Time))
				}
				if got := fmt.Sprint(waits); got != row.want {
					t.Errorf("waits %s; want %s", got, row.want)
				}
			})
		})
	}
}
