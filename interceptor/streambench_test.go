// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

const messages = 1000

// streamed is one stream of a thousand messages each way, on each of three clients: gRPC without
// retries, gRPC with its own, and stagger. All share one server.
func streamed(b *testing.B, desc *grpc.StreamDesc, moves ...testserver.Move) (names []string, run []func()) {
	b.Helper()
	srv := testserver.Start(b, testserver.NoRecord())
	srv.Default(testserver.Play(moves...))
	message := wrapperspb.String(strings.Repeat("x", 100))
	for _, client := range []struct {
		name string
		opts []grpc.DialOption
	}{
		{"grpc", []grpc.DialOption{grpc.WithDisableRetry()}},
		{"grpc-retry", []grpc.DialOption{grpc.WithDefaultServiceConfig(serviceConfig)}},
		{"stagger", mustNew(b, mustSet(b, config(plain())), quiet).DialOptions()},
	} {
		conn := srv.Dial(b, client.opts...)
		names = append(names, client.name)
		run = append(run, func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			stream, err := conn.NewStream(ctx, desc, get)
			if err != nil {
				b.Fatal(err)
			}
			sent := 1
			if desc.ClientStreams {
				sent = messages
			}
			for range sent {
				if err := stream.SendMsg(message); err != nil {
					b.Fatal(err)
				}
			}
			_ = stream.CloseSend()
			reply := new(wrapperspb.StringValue)
			for {
				if err := stream.RecvMsg(reply); err != nil || !desc.ServerStreams {
					return
				}
			}
		})
	}
	return names, run
}

// BenchmarkStreamRatio takes the three clients in turns and reports the medians of their times over
// those of gRPC without retries.
func BenchmarkStreamRatio(b *testing.B) {
	reply := slices.Repeat([]proto.Message{wrapperspb.String(strings.Repeat("x", 100))}, messages)
	for _, kind := range []struct {
		name  string
		desc  *grpc.StreamDesc
		moves []testserver.Move
	}{
		{"server", serverStream, []testserver.Move{testserver.Receive(1), testserver.Send(reply...)}},
		{"client", clientStream, []testserver.Move{testserver.ReceiveAll(), testserver.Send(reply[0])}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			names, run := streamed(b, kind.desc, kind.moves...)
			ratios := make([][]float64, len(run))
			took := make([]float64, len(run))
			for b.Loop() {
				for _, k := range rand.Perm(len(run)) { // in no order: what one leaves behind, another pays for
					began := time.Now()
					run[k]()
					took[k] = float64(time.Since(began))
				}
				for i := range run {
					ratios[i] = append(ratios[i], took[i]/took[0])
				}
			}
			for i, name := range names[1:] {
				slices.Sort(ratios[i+1])
				b.ReportMetric(ratios[i+1][len(ratios[i+1])/2], name+"/grpc")
			}
		})
	}
}

// BenchmarkStreamAllocs counts what a stream of a thousand messages allocates.
func BenchmarkStreamAllocs(b *testing.B) {
	reply := slices.Repeat([]proto.Message{wrapperspb.String(strings.Repeat("x", 100))}, messages)
	names, run := streamed(b, serverStream, testserver.Receive(1), testserver.Send(reply...))
	for i, name := range names {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run[i]()
			}
		})
	}
}
