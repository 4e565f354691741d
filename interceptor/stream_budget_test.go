// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// Streams that are cut together take the retries of the reads with whom they share a balance. docs/evidence/outages.md has these
// figures, and docs/streams.md says to give streams a budget of their own.
func TestStreams_ShareBudget(t *testing.T) {
	testkit.Long(t)
	page := string(testkit.Must(os.ReadFile("../docs/evidence/outages.md"))(t))
	const own = "budgets: [{name: streams, bucket: {size: %d}}]\n"
	for _, streams := range []int{10, 100, 1000} {
		var row strings.Builder
		fmt.Fprintf(&row, "| %d |", streams)
		for _, file := range []string{"", fmt.Sprintf(own, 2*streams)} {
			synctest.Test(t, func(t *testing.T) {
				c := newCutScene(t, file)
				c.play(streams)
				fmt.Fprintf(&row, " %d, %d of %d |", c.ended.Load(), c.failed.Load(), c.reads.Load())
				if file != "" && (c.ended.Load() > 0 || c.failed.Load() > 0) {
					t.Errorf("%d streams with a budget of their own: %d of them end, and %d reads fail", streams,
						c.ended.Load(), c.failed.Load())
				}
			})
		}
		if !strings.Contains(page, row.String()+"\n") {
			t.Errorf("the page lacks\n%s", row.String())
		}
	}
}

// cutScene has a client of a server that cuts all streams once, and then has a trouble, in which each third call fails.
type cutScene struct {
	t       *testing.T
	conn    *grpc.ClientConn
	cut     chan struct{} // closed when the streams are cut
	trouble atomic.Bool
	calls   atomic.Int64 // in the trouble

	ended, reads, failed atomic.Int64 // streams, reads of the trouble, those that fail
}

const troubled = 2 * time.Second

func newCutScene(t *testing.T, file string) *cutScene {
	t.Helper()
	c := &cutScene{t: t, cut: make(chan struct{})}
	budget := ""
	if file != "" {
		budget = ", budget: streams"
	}
	const retry = "retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]"
	r := mustNew(t, mustParse(t, file+`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  `+retry+`}
- name: [{service: acme.orders.v1.OrderService, method: ListOrders}]
  `+retry+budget+"}\n"), quiet, interceptor.WithRandom(func() float64 { return 0.5 }))
	lis := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.UnknownServiceHandler(c.handle))
	go func() { _ = server.Serve(lis) }() // returns an error when the server is stopped
	t.Cleanup(server.Stop)
	c.conn = testkit.Must(grpc.NewClient("passthrough:///cut", append(r.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...))(t)
	t.Cleanup(func() { _ = c.conn.Close() })
	return c
}

// handle answers calls. A stream has one message, and then none until it is cut or its client leaves.
func (c *cutScene) handle(_ any, stream grpc.ServerStream) error {
	m := new(wrapperspb.StringValue)
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	takes, n := 5*ms, int64(0)
	if c.trouble.Load() {
		n = c.calls.Add(1)
		takes += time.Duration(n) * time.Microsecond // no two responses come in the same moment: which one fills the balance first, counts
	}
	time.Sleep(takes)
	if n%3 == 0 && n > 0 {
		return status.Error(codes.Unavailable, "restarting")
	}
	if err := stream.SendMsg(m); err != nil {
		return err
	}
	if method, _ := grpc.MethodFromServerStream(stream); method == get {
		return nil
	}
	cut := c.cut
	if c.trouble.Load() {
		cut = nil // only the streams from before are cut
	}
	select {
	case <-cut:
		return status.Error(codes.Unavailable, "restarting")
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

// play opens streams, makes 100 reads a second, and has the trouble after 30 s.
func (c *cutScene) play(streams int) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	again := interceptor.Resume(func(last proto.Message) (proto.Message, bool) { return last, true })
	for range streams {
		running.Go(func() {
			if err := exchange(ctx, c.conn, serverStream, list, again); reasonOf(err) == policy.ReasonBudgetExhausted {
				c.ended.Add(1)
			}
		})
	}
	read := func() {
		during := c.trouble.Load()
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		err := exchange(ctx, c.conn, nil, get)
		if during {
			c.reads.Add(1)
		}
		if during && reasonOf(err) == policy.ReasonBudgetExhausted {
			c.failed.Add(1)
		}
	}
	time.AfterFunc(30*time.Second, func() { c.trouble.Store(true); close(c.cut) })
	time.AfterFunc(30*time.Second+troubled, func() { c.trouble.Store(false) })
	time.Sleep(3 * ms) // no read is made when the streams are cut
	for range 3500 {
		running.Go(read)
		time.Sleep(10 * ms)
	}
	cancel()
	running.Wait()
}
