// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// Attempt is one request as the server received it.
type Attempt struct {
	Method   string        // "/package.Service/Method"; of longer names than 256 bytes, the first 256
	Number   int           // among the attempts of this method, starting at 1
	Conn     int           // the number of its connection, starting at 1
	Time     time.Time     // when its headers arrived
	Timeout  time.Duration // remaining time until the client's deadline; 0: none
	Metadata metadata.MD   // the client's; read-only

	Requests   [][]byte // the received messages, as sent: the first, and then up to 4 MiB; read-only
	Received   int      // the number of received messages, including those not in Requests
	HalfClosed bool     // the server has received the client's half-close; most steps end before they look for it
	Sent       int      // messages that the server has sent, or is sending

	End       time.Time  // zero while it runs
	Code      codes.Code // of its end; OK while it runs
	Cancelled bool       // the client, its deadline or the connection ended it before the step was done

	size     int  // of Metadata and Requests, in bytes
	full     bool // no more Requests are kept
	recorded bool // the record counts its size
}

// maxSize bounds the size of an attempt's Metadata and Requests, so that endless streams can be recorded.
const maxSize = 4 << 20

// clone returns a copy of the attempt, which later messages don't change.
func (a *Attempt) clone() Attempt {
	b := *a
	b.Requests = slices.Clip(b.Requests)
	return b
}
