// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

const pushback = "grpc-retry-pushback-ms"

func TestAnswer(t *testing.T) {
	t.Parallel()
	moved := testkit.Must(status.New(codes.NotFound, "gone").WithDetails(&errdetails.ErrorInfo{Reason: "MOVED"}))(t)
	down := testserver.Fail(codes.Unavailable)
	cost := func(value string) metadata.MD { return metadata.Pairs("cost", value) }
	for name, row := range map[string]struct {
		step testserver.Step
		want string // code, message, reply, trailer, details, duration
	}{
		"OK":                      {testserver.OK(wrapperspb.String("pong")), `OK "" "pong" map[] [] 0s`},
		"Fail":                    {testserver.Fail(codes.Aborted, "the disk is full"), `Aborted "the disk is full" "" map[] [] 0s`},
		"Fail, without a message": {testserver.Fail(codes.Aborted), `Aborted "scripted failure" "" map[] [] 0s`},
		"FailStatus":              {testserver.FailStatus(moved), `NotFound "gone" "" map[] [reason:"MOVED"] 0s`},
		"Delay":                   {testserver.OK().Delay(90 * time.Minute), `OK "" "" map[] [] 1h30m0s`},
		"RetryInfo":               {down.RetryInfo(8 * time.Second), `Unavailable "scripted failure" "" map[] [retry_delay:{seconds:8}] 0s`},
		"Pushback of nothing":     {down.Pushback(), `Unavailable "scripted failure" "" map[] [] 0s`},
		"Pushback":                {down.Pushback("-1"), `Unavailable "scripted failure" "" map[grpc-retry-pushback-ms:[-1]] [] 0s`},
		"Pushback, twice":         {down.Pushback("7", "8"), `Unavailable "scripted failure" "" map[grpc-retry-pushback-ms:[7 8]] [] 0s`},
		"Trailer":                 {testserver.OK().Trailer(cost("1")).Trailer(cost("2")), `OK "" "" map[cost:[1 2]] [] 0s`},
		"a reply and a failure":   {testserver.OK(wrapperspb.String("half")).Then(down), `Unavailable "scripted failure" "half" map[] [] 0s`},
		"raw":                     {raw("\x0a\x04pong"), `OK "" "pong" map[] [] 0s`},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, func(t *testing.T, s scene) {
				s.On(get, row.step)
				a := s.call(t.Context(), get)
				delete(a.trailer, "content-type") // of Trailers-Only
				delete(a.trailer, "grpc-status-details-bin")
				st := status.Convert(a.err)
				details := strings.ReplaceAll(fmt.Sprint(st.Details()), "  ", " ") // as protobuf varies it
				// As a plain map: metadata prints its values as "redacted" from gRPC 1.85 on.
				got := fmt.Sprintf("%v %q %q %v %s %v", st.Code(), st.Message(), a.reply, map[string][]string(a.trailer), details, a.elapsed)
				if got != row.want {
					t.Errorf("%s\nwant %s", got, row.want)
				}
				if st.Code() != codes.OK && a.reply == "" && len(a.header) != 0 {
					t.Errorf("headers %v came with a failure that has none: not Trailers-Only", a.header)
				}
			})
		})
	}
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

func TestRaw(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, raw("\xff"))
		wantCode(t, s.call(t.Context(), get), codes.Internal)
	})
}
