// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/stagger-go/stagger/policy"
)

// callOptions are the options that the caller gave to a call. gRPC writes to the targets of Header, Trailer
// and Peer at the end of each attempt, and then calls OnFinish. So attempts never get the caller's targets:
// forAttempt gives each attempt other targets, and deliver fills the caller's once: a call has one answer.
type callOptions struct {
	caller   []grpc.CallOption // as the caller gave them
	shared   []grpc.CallOption // for every attempt, unchanged; stored in the first attempt's array, so that one attempt allocates nothing
	embedded []grpc.CallOption // of user types that embed a target; every attempt gets copies
	notify   bool              // the caller has targets or callbacks
	header   bool              // attempts report their headers, to the caller or to us
	opaque   bool              // one may have a target that we can't find
	foreign  bool              // the caller gave options of go-grpc-middleware's retries
	codec    bool              // the caller chose a codec
	limited  bool              // the caller gave limits, which the policy's may not exceed
	static   bool              // the caller gave grpc.StaticMethod

	maxAttempts int // the call's limit, which overrides its policy's
	mode        policy.Mode
}

// forAttempt returns the options to pass to gRPC for an attempt; more are for this attempt alone. It is safe for
// concurrent use by parallel attempts.
func (o *callOptions) forAttempt(a *attemptOptions, more ...grpc.CallOption) []grpc.CallOption {
	opts := append(a.array[:added], o.shared...)
	if o.header {
		opts = append(opts, grpc.Header(&a.header))
	}
	for _, option := range o.embedded {
		opts = append(opts, withTarget(option, a.target(promoted(option))))
	}
	return slices.Clip(append(opts, more...))
}

// asGiven returns the options to pass to gRPC for the only attempt of a call: the caller's, unchanged, and ours.
func (o *callOptions) asGiven(a *attemptOptions) []grpc.CallOption {
	opts := append(a.array[:added], o.shared...)
	for _, option := range o.caller {
		_, callback := option.(grpc.OnFinishCallOption)
		switch promoted(option).(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
			opts = append(opts, option)
		default:
			if callback {
				opts = append(opts, option)
			}
		}
	}
	return slices.Clip(opts)
}

// deliver fills the caller's targets from the attempt whose answer is the call's. It is called once, when no
// attempt runs any more.
func (o *callOptions) deliver(a *attemptOptions) {
	if !o.notify {
		return
	}
	for _, option := range o.caller {
		switch target := promoted(option).(type) {
		case grpc.HeaderCallOption:
			*target.HeaderAddr = a.header
		case grpc.TrailerCallOption:
			*target.TrailerAddr = a.trailer
		case grpc.PeerCallOption:
			*target.PeerAddr = a.from()
		}
	}
}

// finished calls the caller's OnFinish options, once.
func (o *callOptions) finished(err error) {
	if !o.notify {
		return
	}
	for _, option := range o.caller {
		if option, ok := option.(grpc.OnFinishCallOption); ok {
			option.OnFinish(err)
		}
	}
}

// attemptOptions are the options of one attempt, with the values that gRPC writes to them.
type attemptOptions struct {
	header  metadata.MD // nil if none arrived, or without callOptions.header
	trailer metadata.MD
	peer    peer.Peer
	ended   atomic.Bool                   // gRPC has ended the attempt, in any goroutine, and won't write here again
	retrier *Retrier                      // notified if gRPC ends more than one attempt with these options
	onEnd   endListener                   // called when gRPC has ended the attempt; may be nil
	waiter  atomic.Pointer[chan struct{}] // closed when gRPC has ended the attempt; nil without a waiter

	array [added + 12]grpc.CallOption // those that we add, then space for those of the call
}

// endListener is notified when gRPC has ended an attempt, in any goroutine.
type endListener interface{ onFinish(err error) }

// added is the number of options that we add to every attempt.
const added = 4

// init makes a ready for its first attempt.
func (a *attemptOptions) init() {
	copy(a.array[:], []grpc.CallOption{
		grpc.Trailer(&a.trailer),
		grpc.Peer(&a.peer),
		grpc.OnFinish(a.end),
		insideOption{},
	})
	a.peer.Addr = nowhere{}
}

// end is gRPC's OnFinish. A second call means that an inner interceptor has repeated the attempt, or that the context was
// over when gRPC was to create the stream.
func (a *attemptOptions) end(err error) {
	if a.ended.Swap(true) && a.retrier != nil && (err == nil || answered(err)) {
		a.retrier.warnOnce(&innerRetries, "", "")
	}
	if waiter := a.waiter.Swap(nil); waiter != nil {
		close(*waiter)
	}
	if a.onEnd != nil {
		a.onEnd.onFinish(err)
	}
}

// longestEnd bounds the wait for gRPC's OnFinish at the end of an attempt. It expires only if an inner interceptor doesn't
// pass on its options.
const longestEnd = 100 * time.Millisecond

// awaitEnd waits until gRPC has ended an attempt whose call has returned: another goroutine of gRPC may still
// write trailer and peer. Only one goroutine may call it.
func (a *attemptOptions) awaitEnd() {
	if a.ended.Load() {
		return
	}
	waiter := make(chan struct{})
	a.waiter.Store(&waiter)
	if a.ended.Load() {
		return
	}
	timer := time.NewTimer(longestEnd)
	defer timer.Stop()
	select {
	case <-waiter:
	case <-timer.C:
	}
}

// target returns the attempt's target that replaces one of the caller's.
func (a *attemptOptions) target(callers grpc.CallOption) grpc.CallOption {
	switch callers.(type) {
	case grpc.HeaderCallOption:
		return grpc.Header(&a.header)
	case grpc.TrailerCallOption:
		return grpc.Trailer(&a.trailer)
	default:
		return grpc.Peer(&a.peer)
	}
}

// nowhere is the address of a peer that gRPC has not set. gRPC sets the whole peer as soon as it has a
// stream, with a nil address if the connection has none.
type nowhere struct{}

func (nowhere) Network() string { return "" }
func (nowhere) String() string  { return "" }

// unsent reports whether the attempt provably never left the client: gRPC has ended it, and had no stream with
// a peer. If an inner interceptor doesn't pass on the options, there is no proof.
func (a *attemptOptions) unsent() bool { return a.ended.Load() && a.peer.Addr == nowhere{} }

// from returns the peer, empty if there was none.
func (a *attemptOptions) from() peer.Peer {
	if a.peer.Addr == (nowhere{}) {
		return peer.Peer{}
	}
	return a.peer
}
