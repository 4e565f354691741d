// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"net"
	"testing"

	"pgregory.net/rapid"
)

func TestFramesAcrossWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		want := int64(0)
		for range rapid.IntRange(0, 10).Draw(t, "frames") {
			length := rapid.IntRange(0, 300).Draw(t, "length")
			kind := rapid.ByteRange(0, 9).Draw(t, "type")
			if kind == 0 || kind == 1 { // DATA and HEADERS
				want++
			}
			wire = append(wire, 0, byte(length>>8), byte(length), kind, 0, 0, 0, 0, 1)
			wire = append(wire, make([]byte, length)...)
		}
		var f frames
		for len(wire) > 0 {
			cut := min(len(wire), rapid.IntRange(1, 40).Draw(t, "cut"))
			f.scan(wire[:cut])
			wire = wire[cut:]
		}
		if got := f.sent.Load(); got != want {
			t.Fatalf("counted %d frames with headers or data; want %d", got, want)
		}
	})
}

func TestConnectionIsForgottenWhenClosed(t *testing.T) {
	t.Parallel()
	l := &listener{open: map[*connection]struct{}{}}
	client, server := net.Pipe()
	defer func() { _ = client.Close() }()
	c := l.adopt(server)
	if len(l.open) != 1 {
		t.Fatalf("%d connections are open; want 1", len(l.open))
	}
	if err := c.Close(); err != nil || len(l.open) != 0 {
		t.Errorf("closed with %v, %d connections are open; want none", err, len(l.open))
	}
}
