// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// TestOutage_Inbound prints the table by which inboundShare was chosen. A service in the middle is called with a deadline
// while the last one restarts, and waits for it for a part of that; Of the calls that
// begin before the last service is seen again: the part that succeeds, and, of the rest, the part that ends by the
// middle's answer, 10 ms before the deadline at the latest. Then the caller above knows the error, and can do without.
//
//	deadline | restart | share of 0.25 | 0.5         | 0.75        | 1
//	0.5 s    | 0.3 s   |  12 %  100 %  |  24 % 100 % |  37 % 100 % |  48 %  0 %
//	1 s      | 0.3 s   |  24 %  100 %  |  49 % 100 % |  74 % 100 % |  98 %  0 %
//	2 s      | 0.3 s   |  49 %  100 %  |  99 % 100 % | 100 %       | 100 %
//	2 s      | 2 s     |  19 %  100 %  |  38 % 100 % |  57 % 100 % |  76 %  0 %
//	5 s      | 2 s     |  48 %  100 %  |  96 % 100 % | 100 %       | 100 %
func TestOutage_Inbound(t *testing.T) {
	t.Parallel()
	shares := []float64{0.25, 0.5, 0.75, 1}
	for _, deadline := range []time.Duration{500 * ms, time.Second, 2 * time.Second, 5 * time.Second} {
		for _, away := range []time.Duration{300 * ms, 2 * time.Second} { // which gRPC sees the end of after 1 and 2.6 s
			t.Run(fmt.Sprint(deadline, " ", away), func(t *testing.T) {
				t.Parallel()
				var row strings.Builder
				for _, share := range shares {
					var r inboundRestart
					synctest.Test(t, func(t *testing.T) { r.play(t, share, deadline, away) })
					fmt.Fprintf(&row, " | %.2f %.2f", float64(r.answered)/float64(r.calls), float64(r.told)/float64(max(1, r.calls-r.answered)))
					if share == 0.75 && r.told != r.calls-r.answered {
						t.Errorf("%d calls fail, %d are told in time; want all", r.calls-r.answered, r.told)
					}
				}
				t.Logf("deadline %v, away %v%s", deadline, away, row.String())
			})
		}
	}
}

// inboundRestart is what becomes of the calls to the service in the middle.
type inboundRestart struct {
	mu                    sync.Mutex
	calls, answered, told int
}

func (r *inboundRestart) play(t *testing.T, share float64, deadline, away time.Duration) {
	last := testserver.Start(t)
	last.On("*", text("here"))
	retrier := mustNew(t, mustSet(t, config(policy.DefaultRetry())), quiet)
	retrier.SetInboundShare(share)
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
