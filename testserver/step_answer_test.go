// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

const pushback = "grpc-retry-pushback-ms"

func TestPushback(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{nil, {"1000"}, {"-1"}, {"soon"}, {"7", "8"}} {
		t.Run(fmt.Sprint(values), func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Unavailable).Pushback(values...))
				if got := s.call(t.Context(), get).trailer.Get(pushback); !slices.Equal(got, values) {
					t.Errorf("trailer %q; want %q", got, values)
				}
			})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable).Trailer(metadata.Pairs("retry-after", "3")))
		if got := s.call(t.Context(), get).trailer.Get("retry-after"); !slices.Equal(got, []string{"3"}) {
			t.Errorf("trailer %q; want 3", got)
		}
	})
}

func TestRetryInfo(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.ResourceExhausted).RetryInfo(8*time.Second))
		details := status.Convert(s.call(t.Context(), get).err).Details()
		if len(details) != 1 {
			t.Fatalf("details %v; want one", details)
		}
		info, ok := details[0].(*errdetails.RetryInfo)
		if !ok || info.GetRetryDelay().AsDuration() != 8*time.Second {
			t.Errorf("detail %v; want a RetryInfo of 8s", details[0])
		}
	})
}

func TestFailStatusKeepsDetails(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		st, err := status.New(codes.NotFound, "gone").WithDetails(&errdetails.ErrorInfo{Reason: "MOVED"})
		if err != nil {
			t.Fatal(err)
		}
		s.On(get, testserver.FailStatus(st))
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.NotFound)
		if got := status.Convert(a.err).Details(); len(got) != 1 {
			t.Errorf("details %v; want the one given", got)
		}
	})
}

func TestHeaderBeforeDelayAndFailure(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Aborted).Header(metadata.MD{"Shard": {"7"}}).Delay(time.Minute))
		stream, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, get)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := stream.SendMsg(wrapperspb.String("request")); err != nil {
			t.Fatal(err)
		}
		header, err := stream.Header()
		if err != nil || !slices.Equal(header.Get("shard"), []string{"7"}) || time.Since(start) != 0 {
			t.Errorf("headers %v, %v after %v; want shard 7 at once", header, err, time.Since(start))
		}
		wantCode(t, answer{err: stream.RecvMsg(&wrapperspb.StringValue{})}, codes.Aborted)
		if time.Since(start) != time.Minute {
			t.Errorf("failed after %v; want 1m", time.Since(start))
		}
	})
}

func TestTrailerWithSuccess(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.OK().Trailer(metadata.Pairs("cost", "1")).Trailer(metadata.Pairs("cost", "2")))
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.OK)
		if got := a.trailer.Get("cost"); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("trailer %q; want both values", got)
		}
	})
}

func TestReplyWithFailure(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable).Reply(wrapperspb.String("half")))
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.Unavailable)
		wantText(t, "reply with the error", a.reply, "half")
	})
}

func TestRaw(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, raw("\x0a\x04pong"), raw("\xff"))
		wantText(t, "reply", s.call(t.Context(), get).reply, "pong")
		wantCode(t, s.call(t.Context(), get), codes.Internal)
	})
}
