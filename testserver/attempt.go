// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// Attempt is one request as the server saw it.
type Attempt struct {
	Method   string        // "/package.Service/Method"
	Number   int           // of the attempts of this method, from 1
	Serial   int           // of all attempts, from 1
	Conn     int           // the connection it came on, from 1
	Time     time.Time     // when its headers arrived
	Timeout  time.Duration // time left then until the client's deadline; 0: it has none
	Metadata metadata.MD   // what the client sent; not to be changed

	Requests   [][]byte // the messages that the server has received, as sent: the first, and then up to 4 MiB; not to be changed
	Received   int      // how many messages that were, those left out of Requests included
	Bytes      int      // their size without gRPC's framing, after decompression
	HalfClosed bool     // the server has seen that the client sends no more
	Sent       int      // messages the server has sent, or is sending

	End       time.Time  // when the server was done with it; zero while it runs
	Code      codes.Code // what it ended with; OK while it runs
	Cancelled bool       // the client, its deadline or the connection ended it before the step was done

	size int // of Requests, in bytes
}

// maxSize bounds what an attempt keeps in Requests, so that endless streams can be recorded.
const maxSize = 4 << 20

// received records a message. The first is kept whatever its size; after one that is too much,
// none is.
func (a *Attempt) received(b []byte) {
	a.Received++
	a.Bytes += len(b)
	const header = 24 // of the slice
	a.size += header + len(b)
	if a.Received == 1 || a.size <= maxSize {
		a.Requests = append(a.Requests, b)
	}
}

// clone is the attempt as it is now: later messages do not show in it.
func (a *Attempt) clone() Attempt {
	b := *a
	b.Requests = slices.Clip(b.Requests)
	return b
}
