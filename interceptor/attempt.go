// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// attempt is what gRPC reports of the running attempt, and the options that make it do so. The
// caller's Header, Trailer, Peer and OnFinish options are not given to attempts: gRPC would write to
// them once for each (law 1).
type attempt struct {
	header  metadata.MD // nil if none arrived, or nobody asks (see Retrier.unary)
	trailer metadata.MD
	peer    peer.Peer
	// ended is whether gRPC itself has ended the attempt: our options have reached it. A stream ends
	// in a goroutine of gRPC's, too.
	ended atomic.Bool
	hook  func() // runs when gRPC has ended the attempt; nil for unary calls

	number int           // 1 is the first
	began  time.Duration // on the budgets' clock
	permit grant         // that paid for it, until it is settled
	done   func(error)   // tells the breaker how it has ended; nil without one, and once told

	array [own + 12]grpc.CallOption // our own, then room for the caller's
}

// own is the number of options that every attempt gets from us.
const own = 4

// attempts that have succeeded are used again, so that success allocates nothing. One that failed is
// not: an interceptor further in may have left something behind that still writes to it.
var attempts = sync.Pool{New: func() any { return newAttempt() }}

func newAttempt() *attempt {
	a := new(attempt)
	copy(a.array[:], []grpc.CallOption{
		grpc.Trailer(&a.trailer),
		grpc.Peer(&a.peer),
		grpc.OnFinish(a.onFinish),
		insideOption{},
	})
	a.peer.Addr = nowhere{}
	return a
}

// options are what gRPC gets for the attempt: our own, and the rest, which is the same for each.
func (a *attempt) options(rest []grpc.CallOption) []grpc.CallOption {
	return append(append(a.array[:own:own], grpc.Header(&a.header)), rest...)
}

func (a *attempt) onFinish(error) {
	a.ended.Store(true)
	if a.hook != nil {
		a.hook()
	}
}

// release lets another call use the attempt. gRPC leaves its targets alone where it has nothing to
// report, so what this attempt left there must go. The options stay until others take their place:
// an interceptor that still reads them, though it should not, must not find nil there.
func (a *attempt) release() {
	if a.header != nil || a.trailer != nil {
		a.header, a.trailer = nil, nil
	}
	if a.peer.Addr != (nowhere{}) {
		a.peer = peer.Peer{Addr: nowhere{}}
	}
	if a.ended.Load() {
		a.ended.Store(false)
	}
	attempts.Put(a)
}

// nowhere is the address of a peer that gRPC has not set: it sets the whole peer as soon as there is
// a stream, to one without an address where a connection has none.
type nowhere struct{}

func (nowhere) Network() string { return "" }
func (nowhere) String() string  { return "" }

// settled is what gRPC reports of an attempt that has failed: nothing, if it has not ended it yet and
// so may still write there, as when the error comes from an interceptor further in.
func (a *attempt) settled() *attempt {
	if a.ended.Load() {
		return a
	}
	silent := newAttempt()
	silent.number, silent.began, silent.permit, silent.done = a.number, a.began, a.permit, a.done
	return silent
}

// unsent reports that the attempt provably never left the client: gRPC has ended it, and had no
// stream to take a peer from. An interceptor further in that keeps options to itself proves nothing.
func (a *attempt) unsent() bool { return a.ended.Load() && a.peer.Addr == nowhere{} }

// from is the peer, empty if there was none.
func (a *attempt) from() peer.Peer {
	if a.peer.Addr == (nowhere{}) {
		return peer.Peer{}
	}
	return a.peer
}

// deliver gives the caller what the last attempt brought, and tells it of the call's end.
func (a *attempt) deliver(caller []grpc.CallOption, err error) {
	for _, o := range caller {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = a.header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = a.trailer
		case grpc.PeerCallOption:
			*o.PeerAddr = a.from()
		}
	}
	for _, o := range caller {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}
