// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/usual"
	"github.com/stagger-go/stagger/testserver"
)

// A service in the middle is called with a deadline while the last one restarts, and waits for it for three quarters of that. All
// other callers know the error 10 ms before the deadline at the latest, and can do without: docs/evidence/chains.md.
func TestOutage_Inbound(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{500 * ms, 2 * time.Second, 5 * time.Second} {
		for _, away := range []time.Duration{300 * ms, 2 * time.Second} { // which gRPC sees the end of after 1 and 2.6 s
			t.Run(fmt.Sprint(deadline, " ", away), func(t *testing.T) {
				t.Parallel()
				var r inboundRestart
				synctest.Test(t, func(t *testing.T) { r.play(t, deadline, away) })
				if r.told != r.calls-r.answered {
					t.Errorf("%d of %d calls fail, %d are told in time; want all", r.calls-r.answered, r.calls, r.told)
				}
			})
		}
	}
}

// inboundRestart is what becomes of the calls to the service in the middle.
type inboundRestart struct {
	mu                    sync.Mutex
	calls, answered, told int
}

func (r *inboundRestart) play(t *testing.T, deadline, away time.Duration) {
	last := testserver.Start(t)
	last.On("*", text("here"))
	retrier := mustNew(t, mustSet(t, config(usual.Retry())), quiet)
	below := last.Dial(t, retrier.DialOptions()...)
	middle := testserver.Start(t, testserver.ServerOptions(retrier.ServerOptions()...),
		testserver.Register(unaryOrders(func(ctx context.Context) error { return ask(ctx, below, true) })))
	conn := middle.Dial(t)
	below.Connect()
	time.Sleep(time.Second)
	last.Down()
	time.AfterFunc(away, last.Up)
	var running sync.WaitGroup
	seen := time.Second // when gRPC connects again
	if away > time.Second {
		seen = 2600 * ms
	}
	for end := time.Now().Add(seen); time.Now().Before(end); time.Sleep(10 * ms) {
		r.calls++
		running.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			err := conn.Invoke(ctx, get, wrapperspb.String(""), new(wrapperspb.StringValue))
			left, _ := ctx.Deadline()
			late := time.Until(left) < 10*ms
			r.mu.Lock()
			defer r.mu.Unlock()
			switch {
			case err == nil && !late:
				r.answered++
			case status.Code(err) == codes.Unavailable && !late:
				r.told++
			}
		})
	}
	running.Wait()
}
