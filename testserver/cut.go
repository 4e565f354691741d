// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"bytes"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// cutMark is where a connection is cut. It stands in the message of a cut many times over, since
// flow control may break one of them in two.
const cutMark = "\xd1\x8e\x07\xb6\xc3\x5a\x9f\xf4\x12\xe8\x6d\xa0\x3b\xcc\x71\x95"

var cutMessage = bytes.Repeat([]byte(cutMark), 64)

// cut sends a message that the connection breaks off, and returns how the attempt ends.
func (c *call) cut() error {
	c.conn.cutter.armed.Store(true)
	late := time.AfterFunc(flushTimeout, func() { _ = c.conn.Close() })
	defer late.Stop()
	if !c.encrypted() { // or the message would go out whole
		_ = c.stream.SendMsg(cutMessage) // fails if the connection is gone, as it should be
	}
	<-c.stream.Context().Done()
	if !c.conn.closed.Load() {
		return c.ended(c.stream.Context().Err()) // the client was faster
	}
	return status.Error(codes.Unavailable, "testserver: connection cut")
}

func (c *call) encrypted() bool {
	p, ok := peer.FromContext(c.stream.Context())
	return ok && p.AuthInfo != nil && p.AuthInfo.AuthType() != insecure.NewCredentials().Info().SecurityProtocol
}

// cutter finds where the bytes that go out of a connection are to be cut.
type cutter struct {
	armed atomic.Bool
	tail  []byte // of the writes before: a mark may lie across them
}

// find returns how much of b goes out before the cut, and whether there is one.
func (s *cutter) find(b []byte) (int, bool) {
	if !s.armed.Load() {
		return len(b), false
	}
	before := len(s.tail)
	s.tail = append(s.tail, b...)
	if i := bytes.Index(s.tail, []byte(cutMark)); i >= 0 {
		return max(0, i+len(cutMark)-before), true
	}
	s.tail = append([]byte(nil), s.tail[max(0, len(s.tail)-len(cutMark)+1):]...)
	return len(b), false
}

// writeCut writes b as far as the cutter lets it.
func (c *connection) writeCut(b []byte) (int, error) {
	n, cut := c.cutter.find(b)
	n, err := c.Conn.Write(b[:n])
	if cut && err == nil {
		_ = c.Close()
		err = net.ErrClosed
	}
	return n, err
}
