// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// resets are the ways in which the resetter ends streams, each as often as the others. Only the first may
// be said of what has not been looked at (RFC 9113, 8.7).
var resets = []http2.ErrCode{
	http2.ErrCodeRefusedStream, http2.ErrCodeCancel, http2.ErrCodeInternal, http2.ErrCodeEnhanceYourCalm, http2.ErrCodeNo,
	http2.ErrCodeProtocol, http2.ErrCodeFlowControl, http2.ErrCodeInadequateSecurity,
}

// reset is an HTTP/2 server that does what it is asked, and then resets most streams: gRPC's own server
// never does that on demand.
func (e *effects) reset(conn net.Conn) {
	speak(conn, func(framer *http2.Framer, frame http2.Frame) {
		if f, ok := frame.(*http2.DataFrame); ok && len(f.Data()) > 5 {
			_ = framer.WriteWindowUpdate(0, uint32(len(f.Data())))
			e.answer(framer, f)
		}
	})
}

// answer carries out a request, unless it is refused, and resets its stream or answers it.
func (e *effects) answer(framer *http2.Framer, f *http2.DataFrame) {
	n := numberOf(f.Data()[5:])
	way := int(e.chance(n) * float64(len(resets)+2))
	if way > 0 {
		e.made[n].Add(1)
	}
	if way < len(resets) {
		_ = framer.WriteRSTStream(f.StreamID, resets[way])
		return
	}
	writeHeaders(framer, f.StreamID, false, ":status", "200", "content-type", "application/grpc")
	_ = framer.WriteData(f.StreamID, false, make([]byte, 5))
	writeHeaders(framer, f.StreamID, true, "grpc-status", "0")
}

// A reset says nothing of what was done before, except one that refuses: gRPC itself repeats that, once.
func TestNothingTakesEffectTwiceWhenStreamsAreReset(t *testing.T) {
	t.Parallel()
	calls := enough(20_000)
	e := newEffects(calls)
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 16)
		var served sync.WaitGroup
		served.Go(func() {
			for {
				conn, err := lis.Accept()
				if err != nil {
					return
				}
				served.Go(func() { e.reset(conn) })
			}
		})
		r := mustNew(t, mustSet(t, eager()), quiet)
		conn, err := grpc.NewClient("passthrough:///resetter", append(r.DialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
		if err != nil {
			t.Fatal(err)
		}
		crowd(calls, func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			e.answered[n] = act(ctx, conn, n) == nil
		})
		_ = conn.Close()
		_ = lis.Close()
		served.Wait()
	})
	e.check(t, calls/2)
}
