// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/policy"
)

// serveFrames is an HTTP/2 server that answers the headers of stream n, 1 is the first, with frames.
func serveFrames(lis net.Listener, answer func(f *http2.Framer, id uint32, n int)) {
	conn, err := lis.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer, n := http2.NewFramer(conn, conn), 0
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			n++
			answer(framer, f.StreamID, n)
		}
	}
}

func respond(f *http2.Framer, id uint32) {
	writeHeaders(f, id, false, ":status", "200", "content-type", "application/grpc")
}

// What gRPC makes of streams that are cut without a status. The texts are gRPC's: where a version of it has others,
// these calls are not retried.
func TestCutsAreRetried(t *testing.T) {
	for name, row := range map[string]struct {
		cut  func(f *http2.Framer, id uint32)
		text string
	}{
		"headers, then the end": {func(f *http2.Framer, id uint32) {
			respond(f, id)
			_ = f.WriteData(id, true, nil)
		}, "server closed the stream without sending trailers"},
		"a message, then the end": {func(f *http2.Framer, id uint32) {
			respond(f, id)
			_ = f.WriteData(id, true, make([]byte, 5))
		}, "server closed the stream without sending trailers"},
		"reset without an error": {func(f *http2.Framer, id uint32) {
			_ = f.WriteRSTStream(id, http2.ErrCodeNo)
		}, "stream terminated by RST_STREAM with error code: NO_ERROR"},
		"headers, then reset": {func(f *http2.Framer, id uint32) {
			respond(f, id)
			_ = f.WriteRSTStream(id, http2.ErrCodeInternal)
		}, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lis := bufconn.Listen(1 << 16)
				defer lis.Close()
				served := make(chan struct{})
				go func() {
					defer close(served)
					serveFrames(lis, func(f *http2.Framer, id uint32, n int) {
						if n != 2 && n != 4 {
							row.cut(f, id)
							return
						}
						respond(f, id)
						_ = f.WriteData(id, false, make([]byte, 5))
						writeHeaders(f, id, true, "grpc-status", "0")
					})
				}()
				j := new(journal)
				retrier := mustNew(t, mustSet(t, config(plain())), withJournal(j))
				conn, err := grpc.NewClient("passthrough:///cutter", append(retrier.DialOptions(),
					grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
				if err != nil {
					t.Fatal(err)
				}
				call := func(method string) error {
					j.attempts = nil
					_, err := scene{conn: conn}.call(t.Context(), method)
					return err
				}
				if err := call(get); err != nil || len(j.attempts) != 2 {
					t.Errorf("%v after %d attempts; want OK after 2", err, len(j.attempts))
				}
				stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, get)
				if err != nil {
					t.Fatal(err)
				}
				_ = stream.CloseSend()
				if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
					t.Errorf("stream: %v; want OK", err)
				}
				if err := call(get); !isInternal(err, row.text) || reasonOf(err) != policy.ReasonAttemptsExhausted || len(j.attempts) != 4 {
					t.Errorf("%v, %s after %d attempts; want INTERNAL after 4", err, reasonOf(err), len(j.attempts))
				}
				if err := call(create); !isInternal(err, row.text) || reasonOf(err) != policy.ReasonNotIdempotent || len(j.attempts) != 1 {
					t.Errorf("not safe to repeat: %v, %s after %d attempts; want INTERNAL after 1", err, reasonOf(err), len(j.attempts))
				}
				_ = conn.Close()
				<-served
			})
		})
	}
}

func isInternal(err error, text string) bool {
	return status.Code(err) == codes.Internal && strings.HasSuffix(err.Error(), text)
}
