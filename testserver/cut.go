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

// cutMark marks the place of a cut. The message of a cut contains it many times, because
// flow control may split one of them.
const cutMark = "\xd1\x8e\x07\xb6\xc3\x5a\x9f\xf4\x12\xe8\x6d\xa0\x3b\xcc\x71\x95"

var cutMessage = bytes.Repeat([]byte(cutMark), 64)

// cut sends a message during which the connection breaks, and returns the attempt's error.
func (c *call) cut() error {
	c.conn.cutter.armed.Store(true)
	late := time.AfterFunc(flushTimeout, func() { _ = c.conn.Close() })
	defer late.Stop()
	if !c.encrypted() { // else the message would go out completely
		_ = c.stream.SendMsg(cutMessage) // fails if the connection is gone, as intended
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

// cutter finds the place of the cut in a connection's outgoing bytes.
type cutter struct {
	armed atomic.Bool
	tail  []byte // of previous writes: a mark may span several
}

// find returns the number of bytes of b before the cut, and whether there is one.
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

// writeCut writes b up to the cut, if there is one.
func (c *connection) writeCut(b []byte) (int, error) {
	n, cut := c.cutter.find(b)
	n, err := c.Conn.Write(b[:n])
	if cut && err == nil {
		_ = c.Close()
		err = net.ErrClosed
	}
	return n, err
}
