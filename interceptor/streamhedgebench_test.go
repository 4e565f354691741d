// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// BenchmarkStreamHedgeNotFired is what the readiness to hedge costs a stream that is answered at once, beside
// one that is only retried: a goroutine, which waits for the first message.
func BenchmarkStreamHedgeNotFired(b *testing.B) {
	srv := testserver.Start(b, testserver.NoRecord())
	message := wrapperspb.String(strings.Repeat("x", 100))
	srv.Default(testserver.Play(testserver.ReceiveAll(), testserver.Send(message)))
	slow := hedged(func(h *policy.HedgeSpec) { h.Delay, h.Budget = time.Minute, "" })
	for _, kind := range []struct {
		name     string
		desc     *grpc.StreamDesc
		messages int
	}{{"server", serverStream, 1}, {"client 100", clientStream, 100}} {
		for _, client := range []struct {
			name   string
			policy policy.Config
		}{{"retried", config(plain())}, {"hedged", slow}} {
			conn := srv.Dial(b, mustNew(b, mustSet(b, client.policy), quiet).DialOptions()...)
			b.Run(kind.name+"/"+client.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					short(b, conn, kind.desc, kind.messages, message)
				}
			})
		}
	}
}

// short makes a stream that sends n messages and receives until it ends.
func short(b *testing.B, conn *grpc.ClientConn, desc *grpc.StreamDesc, n int, message *wrapperspb.StringValue) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := conn.NewStream(ctx, desc, get)
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		if err := stream.SendMsg(message); err != nil {
			b.Fatal(err)
		}
	}
	_ = stream.CloseSend()
	reply := new(wrapperspb.StringValue)
	for err == nil && desc.ServerStreams {
		err = stream.RecvMsg(reply)
	}
	if !desc.ServerStreams {
		_ = stream.RecvMsg(reply)
	}
}
