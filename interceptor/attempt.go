// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// attempt is what gRPC reports of the running attempt, and the options that make it do so. The
// caller's Header, Trailer, Peer and OnFinish options are not given to attempts: gRPC would write to
// them once for each (law 1).
type attempt struct {
	header  metadata.MD // nil if none arrived, or nobody asks (see call.later)
	trailer metadata.MD
	peer    peer.Peer
	ended   bool // gRPC itself has ended the attempt: our options have reached it

	array [own + 12]grpc.CallOption // our own, then room for the caller's
}

// own is the number of options that every attempt gets from us.
const own = 4

// attempts that have succeeded are used again, so that success allocates nothing.
var attempts = sync.Pool{New: func() any {
	a := new(attempt)
	copy(a.array[:], []grpc.CallOption{
		grpc.Trailer(&a.trailer),
		grpc.Peer(&a.peer),
		grpc.OnFinish(a.onFinish),
		insideOption{},
	})
	return a
}}

func (a *attempt) onFinish(error) { a.ended = true }

// reset makes ready for the next attempt. gRPC leaves its targets alone where it has nothing to
// report, so what the attempt before left there must go.
func (a *attempt) reset() {
	a.header, a.trailer, a.peer, a.ended = nil, nil, peer.Peer{}, false
}

// release lets another call use the attempt. Only after success: an attempt that failed may have
// left something behind that still writes to it.
func (a *attempt) release(opts []grpc.CallOption) {
	clear(opts[own:])
	if a.ended {
		a.reset()
	}
	attempts.Put(a)
}

// unsent reports that the attempt provably never left the client: gRPC has ended it, and had no
// stream to take a peer from. An interceptor further in that keeps options to itself proves nothing.
func (a *attempt) unsent() bool { return a.ended && a.peer.Addr == nil }

// deliver gives the caller what the last attempt brought, and tells it of the call's end.
func (a *attempt) deliver(caller []grpc.CallOption, err error) {
	for _, o := range caller {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = a.header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = a.trailer
		case grpc.PeerCallOption:
			*o.PeerAddr = a.peer
		}
	}
	for _, o := range caller {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}
