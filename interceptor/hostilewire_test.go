// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"encoding/base64"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// repeater is an HTTP/2 server that answers every stream with the same trailers, and nothing else: gRPC's own
// server would not say such things. It counts the streams.
func repeater(conn net.Conn, streams *int, pairs []string) {
	speak(conn, func(framer *http2.Framer, frame http2.Frame) {
		if f, ok := frame.(*http2.HeadersFrame); ok {
			*streams++
			writeHeaders(framer, f.StreamID, true, append([]string{":status", "200", "content-type", "application/grpc"}, pairs...)...)
		}
	})
}

// What no gRPC server would send, as it goes over the wire.
func TestAHostileServersBytesAreBounded(t *testing.T) {
	t.Parallel()
	unavailable := func(pairs ...string) []string { return append([]string{"grpc-status", "14"}, pairs...) }
	disagreeing := base64.RawStdEncoding.EncodeToString([]byte("\x08\x05")) // says NOT_FOUND
	for name, row := range map[string]struct {
		trailers []string
		code     codes.Code
		attempts int
		elapsed  time.Duration
	}{
		"nothing hostile":             {unavailable(), codes.Unavailable, 4, unsaid},
		"no status":                   {nil, codes.Unknown, 1, 0},
		"a status of no meaning":      {[]string{"grpc-status", "99"}, codes.Code(99), 1, 0},
		"a status beyond 32 bits":     {[]string{"grpc-status", "4294967310"}, codes.Unknown, 1, 0},
		"a negative status":           {[]string{"grpc-status", "-14"}, codes.Code(1<<32 - 14), 1, 0},
		"a status that is no number":  {[]string{"grpc-status", "UNAVAILABLE"}, codes.Unknown, 1, 0},
		"details that are not base64": {unavailable("grpc-status-details-bin", "!!!"), codes.Internal, 1, 0},
		"details that are no message": {unavailable("grpc-status-details-bin", "////"), codes.Unavailable, 4, unsaid},
		"details of another code":     {unavailable("grpc-status-details-bin", disagreeing), codes.Internal, 1, 0},
		"pushback in two fields":      {unavailable("grpc-retry-pushback-ms", "5", "grpc-retry-pushback-ms", "5"), codes.Unavailable, 1, 0},
		"pushback in one, with comma": {unavailable("grpc-retry-pushback-ms", "5, 5"), codes.Unavailable, 1, 0},
		"pushback of other digits":    {unavailable("grpc-retry-pushback-ms", "٥"), codes.Unavailable, 1, 0},
		"pushback with control bytes": {unavailable("grpc-retry-pushback-ms", "5\x00"), codes.Internal, 1, 0},
		"a message that is not UTF-8": {unavailable("grpc-message", "%ff%zz%"), codes.Unavailable, 4, unsaid},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					streams, err := hearFrom(t, row.trailers, stream)
					if status.Code(err) != row.code || streams != row.attempts || time.Since(start) != row.elapsed {
						t.Errorf("%v after %d attempts in %v; want %v after %d in %v", err, streams, time.Since(start), row.code, row.attempts, row.elapsed)
					}
				})
			})
		}
	}
}

// hearFrom makes a call to a server that always answers with these trailers, and counts its attempts.
func hearFrom(t *testing.T, trailers []string, stream bool) (streams int, err error) {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			repeater(conn, &streams, trailers)
		}
	})
	r := mustNew(t, mustSet(t, config(plain())), quiet)
	conn, err := grpc.NewClient("passthrough:///repeater", append(r.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	err = ask(t.Context(), conn, !stream)
	_ = conn.Close()
	_ = lis.Close()
	served.Wait()
	return streams, err
}
