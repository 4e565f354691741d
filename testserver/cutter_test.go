// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

func TestCutterFindsMarkAcrossWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.SampledFrom([]byte(cutMark[:3])), 0, 50).Draw(t, "before")
		wire := append(bytes.Clone(before), cutMessage...)
		var s cutter
		s.armed.Store(true)
		sent := 0
		for cut := false; !cut; {
			n := min(len(wire), rapid.IntRange(1, 40).Draw(t, "write"))
			n, cut = s.find(wire[:n])
			wire = wire[n:]
			sent += n
		}
		if want := len(before) + len(cutMark); sent != want {
			t.Fatalf("cut after %d bytes; want %d", sent, want)
		}
	})
}

func TestCutterUnarmed(t *testing.T) {
	t.Parallel()
	var s cutter
	if n, cut := s.find(cutMessage); cut || n != len(cutMessage) {
		t.Errorf("cut %v after %d bytes; want all %d", cut, n, len(cutMessage))
	}
}

// tap records the bytes that a client has read.
type tap struct {
	net.Conn
	mu   sync.Mutex
	read []byte
}

func (c *tap) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, b[:n]...)
	return n, err
}

func TestCutterEndsInsideDataFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(bufferSize)
		srv := Start(t, Listener(lis))
		srv.On("/a/B", Stream(func(grpc.ServerStream) error { return nil }).Then(Cut()))
		var first *tap
		conn := srv.Dial(t, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := lis.DialContext(ctx)
			if first == nil {
				first = &tap{Conn: c}
				return first, err
			}
			return c, err
		}))
		if err := conn.Invoke(t.Context(), "/a/B", &wrapperspb.StringValue{}, &wrapperspb.StringValue{}); err == nil {
			t.Fatal("the call went through")
		}
		synctest.Wait()
		first.mu.Lock()
		defer first.mu.Unlock()
		rest := first.read
		var size int
		for { // to the last frame
			size = 9 + int(binary.BigEndian.Uint32(rest)>>8)
			if size >= len(rest) {
				break
			}
			rest = rest[size:]
		}
		const data, header, prefix = 0, 9, 5
		if rest[3] != data || size != header+prefix+len(cutMessage) || len(rest) != header+prefix+len(cutMark) {
			t.Errorf("the last frame has type %d, %d of %d bytes; want DATA, %d of %d",
				rest[3], len(rest), size, header+prefix+len(cutMark), header+prefix+len(cutMessage))
		}
	})
}
