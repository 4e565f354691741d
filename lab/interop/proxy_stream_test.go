// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
)

// next returns the request for the messages after one of watchOrders.
func next(last proto.Message) (proto.Message, bool) {
	text := "0"
	if m, ok := last.(*wrapperspb.StringValue); ok {
		n, err := strconv.Atoi(m.GetValue())
		if err != nil || n+1 == watched {
			return nil, false
		}
		text = strconv.Itoa(n + 1)
	}
	return wrapperspb.String(text), true
}

// follow receives a whole stream of watchOrders. It returns the number of messages, and an error if it is incomplete.
func follow(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) (int, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, watchOrders, opts...)
	if err != nil {
		return 0, err
	}
	if err := stream.SendMsg(wrapperspb.String("0")); err != nil && err != io.EOF {
		return 0, err
	}
	if err := stream.CloseSend(); err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		m := new(wrapperspb.StringValue)
		switch err := stream.RecvMsg(m); {
		case err == io.EOF && n == watched:
			return n, nil
		case err == io.EOF:
			return n, fmt.Errorf("the stream ends after %d messages", n)
		case err != nil:
			return n, err
		case m.GetValue() != strconv.Itoa(n):
			return n, fmt.Errorf("message %q in the place of %d", m.GetValue(), n)
		}
	}
}

// TestProxyStreams runs server streams through a proxy. Backends and the proxy itself are lost, and the streams resumed.
func TestProxyStreams(t *testing.T) {
	required(t)
	const streams = 10
	text := `
budgets:
  - name: streams
    ratio: {percent: 10, minPerSecond: 4} # few calls, and all of them cut at once
methodConfig:
  - name: [{service: interop.v1.OrderService, method: WatchOrders}]
    retryPolicy: {maxAttempts: 5, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: streams}
`
	clients := []struct {
		name string
		conn func(t *testing.T, p *proxy) *grpc.ClientConn
		opts []grpc.CallOption
	}{
		{bareName, func(t *testing.T, p *proxy) *grpc.ClientConn { return dial(t, p.dialable(), bare().options(t)...) }, nil},
		{ourName, func(t *testing.T, p *proxy) *grpc.ClientConn {
			return dial(t, p.dialable(), retrier(t, text).DialOptions()...)
		}, nil},
		{ourName + ", `Resume`", func(t *testing.T, p *proxy) *grpc.ClientConn {
			return dial(t, p.dialable(), retrier(t, text).DialOptions()...)
		}, []grpc.CallOption{interceptor.Resume(next)}},
	}
	shown := table{header: []string{"proxy", "incident"}}
	for _, c := range clients {
		shown.header = append(shown.header, c.name)
	}
	for _, kind := range []struct {
		name  string
		start func(t *testing.T, ports ...int) *proxy
	}{
		{"nginx", func(t *testing.T, ports ...int) *proxy { return nginx(t, "", "", ports...) }},
		{"HAProxy", func(t *testing.T, ports ...int) *proxy { return haproxy(t, "", ports...) }},
	} {
		for _, i := range []incident{
			{"a backend is killed", 0, "", func(_ *testing.T, _ *proxy, b []*backend) { b[0].Kill() }},
			{"the proxy reloads", 0, "", func(t *testing.T, p *proxy, _ []*backend) { p.Signal(t, p.reloads) }},
			{"the proxy is killed, and starts again at once", 0, "", func(t *testing.T, p *proxy, _ []*backend) { p.Kill(); p.run(t) }},
		} {
			t.Run(kind.name+"/"+i.name, func(t *testing.T) {
				l := newLedger()
				backends := []*backend{startBackend(t, l, 30*time.Millisecond, 0), startBackend(t, l, 30*time.Millisecond, 0)}
				p := kind.start(t, backends[0].port, backends[1].port)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var all sync.WaitGroup
				var mu sync.Mutex // guards whole and failed
				whole, failed := make([]int, len(clients)), make([]error, len(clients))
				for n, c := range clients {
					conn := c.conn(t, p)
					for range streams {
						all.Go(func() {
							_, err := follow(ctx, conn, c.opts...)
							mu.Lock()
							defer mu.Unlock()
							if err == nil {
								whole[n]++
							} else {
								failed[n] = err
							}
						})
					}
				}
				await(t, 5*time.Second, "all streams run", func() bool { return l.total() >= streams*len(clients) })
				pass(t, 200*time.Millisecond) // some messages have come
				i.happen(t, p, backends)
				all.Wait()
				t.Logf("whole: %v; else %v", whole, failed)
				if last := len(clients) - 1; whole[last] < streams-1 {
					t.Errorf("%d of %d streams were whole with Resume: %v", whole[last], streams, failed[last])
				}
				row := []string{kind.name, i.name}
				for _, n := range whole {
					row = append(row, fmt.Sprintf("%d of %d", n, streams))
				}
				shown.rows = append(shown.rows, row)
				p.Kill()
			})
		}
	}
	evidence.add(15, section{title: "Server streams through a proxy", text: proxyStreamText, tables: []table{shown}})
}

const proxyStreamText = `
Streams of 30 messages, one every 30 ms, are cut in the middle. Cells count the streams that arrived complete and in order. Delivered messages are not sent
again, so only ` + "`interceptor.Resume`" + ` continues a stream that was cut. The budget has a reserve for all ten (` + "`minPerSecond: 4`" + `);
the default budget pays for about half of them when they are cut at once.`
