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
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

type tmpStream struct {
	grpc.ClientStream
	cancel func()
}

func (s *tmpStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		s.cancel()
	}
	return err
}

type tmpCodec struct{ encoding.CodecV2 }

func BenchmarkTmp(b *testing.B) {
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
			srv := testserver.Start(b, testserver.NoRecord())
			srv.Default(testserver.Play(kind.moves...))
			message := wrapperspb.String(strings.Repeat("x", 100))
			var names []string
			var run []func()
			for _, client := range []struct {
				name string
				opts []grpc.DialOption
				call []grpc.CallOption
			}{
				{"bare", []grpc.DialOption{grpc.WithDisableRetry()}, nil},
				{"bare2", []grpc.DialOption{grpc.WithDisableRetry()}, nil},
				{"codec", []grpc.DialOption{grpc.WithDisableRetry()}, []grpc.CallOption{grpc.ForceCodecV2(tmpCodec{encoding.GetCodecV2("proto")})}},
				{"stagger", mustNew(b, mustSet(b, config(plain())), quiet).DialOptions(), nil},
				{"ctx", []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					ctx, c1 := context.WithCancel(ctx)
					ctx, _ = context.WithCancel(ctx)
					cs, err := streamer(ctx, desc, cc, method, opts...)
					return &tmpStream{cs, c1}, err
				})}, nil},
			} {
				conn := srv.Dial(b, client.opts...)
				names = append(names, client.name)
				run = append(run, func() {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					stream, err := conn.NewStream(ctx, kind.desc, get, client.call...)
					if err != nil {
						b.Fatal(err)
					}
					sent := 1
					if kind.desc.ClientStreams {
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
						if err := stream.RecvMsg(reply); err != nil || !kind.desc.ServerStreams {
							return
						}
					}
				})
			}
			ratios := make([][]float64, len(run))
			took := make([]float64, len(run))
			for b.Loop() {
				for _, k := range rand.Perm(len(run)) {
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
				b.ReportMetric(ratios[i+1][len(ratios[i+1])/2], name+"/bare")
			}
		})
	}
}
