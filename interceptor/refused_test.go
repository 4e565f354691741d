// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// refuser is an HTTP/2 server that refuses its first stream with REFUSED_STREAM and answers the
// next ones with an empty message: gRPC's own server never does that on demand.
func refuser(conn net.Conn) (streams int) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return 0
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return streams
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			streams++
			if streams == 1 {
				_ = framer.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
				continue
			}
			writeHeaders(framer, f.StreamID, false, ":status", "200", "content-type", "application/grpc")
			_ = framer.WriteData(f.StreamID, false, make([]byte, 5))
			writeHeaders(framer, f.StreamID, true, "grpc-status", "0")
		}
	}
}

func writeHeaders(framer *http2.Framer, stream uint32, end bool, pairs ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(pairs); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
}

// A stream that the server refused unseen is sent again by gRPC itself, even with its retries off.
// That is no attempt of ours: it costs no budget and no allowance.
func TestAStreamThatTheServerRefusedUnseenIsOneAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 16)
		defer lis.Close()
		seen := make(chan int, 1)
		go func() {
			conn, err := lis.Accept()
			if err != nil {
				seen <- 0
				return
			}
			seen <- refuser(conn)
		}()
		j := new(journal)
		retrier := mustNew(t, mustSet(t, config(plain())), withJournal(j))
		conn, err := grpc.NewClient("passthrough:///refuser", append(retrier.DialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (scene{conn: conn}).call(t.Context(), create); err != nil {
			t.Errorf("%v; want the answer of the second stream, though the method is not safe to repeat", err)
		}
		_ = conn.Close()
		if streams := <-seen; streams != 2 || len(j.attempts) != 1 {
			t.Errorf("the server saw %d streams, the observer %d attempts; want 2 and 1", streams, len(j.attempts))
		}
	})
}
