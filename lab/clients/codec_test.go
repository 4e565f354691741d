// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	gogo "github.com/gogo/protobuf/types"
	vtcodec "github.com/planetscale/vtprotobuf/codec/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

// fast is a message with only vtprotobuf's methods.
type fast struct{ value string }

func (f *fast) MarshalVT() ([]byte, error) { return proto.Marshal(wrapperspb.String(f.value)) }

func (f *fast) UnmarshalVT(data []byte) error {
	var s wrapperspb.StringValue
	err := proto.Unmarshal(data, &s)
	f.value = s.GetValue()
	return err
}

// TestCodecs retries calls with messages other than those of google.golang.org/protobuf.
func TestCodecs(t *testing.T) {
	noLeaks(t)
	for name, tc := range map[string]struct {
		options []grpc.DialOption
		message func(string) any
		value   func(any) string
	}{
		"gogo": {nil, func(s string) any { return &gogo.StringValue{Value: s} }, func(m any) string { return m.(*gogo.StringValue).Value }},
		"vtprotobuf": {
			[]grpc.DialOption{grpc.WithDefaultCallOptions(grpc.ForceCodec(vtcodec.Codec{}))}, func(s string) any { return &fast{s} }, func(m any) string { return m.(*fast).value },
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stagger := range []bool{false, true} {
				server := testserver.Start(t)
				options, requests := slices.Concat(tc.options, []grpc.DialOption{grpc.WithDisableRetry()}), 1
				if stagger {
					options, requests = slices.Concat(tc.options, retrier(t, names("lab.Echo", "Get", "Chat")).DialOptions()), 3
				}
				conn := server.Dial(t, options...)
				// The first calls of each kind fail; a stream after its first message.
				server.On(connectGet, testserver.Fail(codes.Unavailable).Times(2), testserver.OK(wrapperspb.String("reply")))
				server.On("/lab.Echo/Chat", moves.Play(moves.Receive(1)).Then(testserver.Fail(codes.Unavailable)).Times(2),
					moves.Play(moves.Echo(0)))
				reply := tc.message("")
				err := conn.Invoke(within(t), connectGet, tc.message("request"), reply)
				check := func(kind, method, want, got string, err error) {
					if stagger && (err != nil || got != want) || !stagger && err == nil {
						t.Errorf("%s, stagger %t: %q, %v", kind, stagger, got, err)
					}
					if n := server.Count(method); n != requests {
						t.Errorf("%s, stagger %t: %d requests, want %d", kind, stagger, n, requests)
					}
				}
				check("unary", connectGet, "reply", tc.value(reply), err)
				got, err := chat(t, conn, tc.message, tc.value)
				check("stream", "/lab.Echo/Chat", "ab", got, err)
			}
		})
	}
}

// chat sends two messages, and returns the answers.
func chat(t *testing.T, conn *grpc.ClientConn, message func(string) any, value func(any) string) (string, error) {
	t.Helper()
	stream, err := conn.NewStream(within(t), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/lab.Echo/Chat")
	if err != nil {
		return "", err
	}
	got := ""
	err = errors.Join(stream.SendMsg(message("a")), stream.SendMsg(message("b")), stream.CloseSend())
	for range 2 {
		m := message("")
		if err := stream.RecvMsg(m); err != nil {
			return got, err
		}
		got += value(m)
	}
	if end := stream.RecvMsg(message("")); end == nil {
		return got, fmt.Errorf("a third message after %q", got)
	}
	return got, err
}
