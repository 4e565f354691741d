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
// and Peer at the end of each attempt, and calls OnFinish there. So attempts never get those of the caller:
// forAttempt gives each attempt targets of its own, and deliver serves the caller's once (law 1).
type callOptions struct {
	caller   []grpc.CallOption // as the caller gave them
	shared   []grpc.CallOption // for every attempt, as they are; they stand in the first attempt's array
	embedded []grpc.CallOption // of the user's types that embed a target; every attempt gets copies
	notify   bool              // the caller has targets or callbacks
	header   bool              // attempts report their headers, for the caller or for us
	opaque   grpc.CallOption   // may have a target that nobody can find; else nil
	foreign  bool              // there are options of another library's retries
	retrier  *Retrier

	criticality policy.Criticality // of the call itself; "": as its policy says

	// What call.read sets.
	maxAttempts int // the most that the call may have, whatever its policy says
	mode        policy.Mode
	draw        draw
}

// read takes the caller's options apart. What all attempts share goes into the array of the first, so that a call of one
// attempt allocates nothing.
func (o *callOptions) read(caller []grpc.CallOption, first *attemptOptions) {
	o.caller, o.shared = caller, first.array[own:own]
	for _, option := range caller {
		if _, ok := option.(grpc.OnFinishCallOption); ok { // gRPC itself calls none that is embedded
			o.notify = true
			continue
		}
		target := promoted(option)
		switch target.(type) {
		case grpc.HeaderCallOption:
			o.header = true
		case grpc.TrailerCallOption, grpc.PeerCallOption:
		case grpc.EmptyCallOption:
			o.foreign = o.foreign || ofForeignRetries(unwrapped(option))
			o.shared = append(o.shared, option)
			continue
		case nil:
			o.opaque = option
			o.shared = append(o.shared, option)
			continue
		default:
			o.shared = append(o.shared, option)
			continue
		}
		o.notify = true
		if option != target {
			o.embedded = append(o.embedded, option)
		}
	}
}

// static reports whether the caller gave grpc.StaticMethod.
func (o *callOptions) static() bool {
	return slices.ContainsFunc(o.caller, func(option grpc.CallOption) bool {
		_, ok := promoted(option).(grpc.StaticMethodCallOption)
		return ok
	})
}

// forAttempt returns the options that gRPC gets for an attempt; more are for this attempt alone. Attempts
// that run beside each other may call it at the same time.
func (o *callOptions) forAttempt(a *attemptOptions, more ...grpc.CallOption) []grpc.CallOption {
	if o.mode == policy.ModeEnforce { // else nothing multiplies what others repeat
		a.retrier = o.retrier
	}
	opts := append(a.array[:own], o.shared...)
	if o.header {
		opts = append(opts, grpc.Header(&a.header))
	}
	for _, option := range o.embedded {
		opts = append(opts, withTarget(option, a.target(promoted(option))))
	}
	return slices.Clip(append(opts, more...))
}

// asGiven returns the options that gRPC gets for the only attempt of a call: the caller's as they are, and ours.
func (o *callOptions) asGiven(a *attemptOptions) []grpc.CallOption {
	if o.mode == policy.ModeEnforce {
		a.retrier = o.retrier
	}
	opts := append(a.array[:own], o.shared...)
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

// deliver gives the caller what gRPC reported of the attempt whose answer is the call's. It is called once, when no
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

// finished tells the caller of the call's end, once.
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

// attemptOptions are the options of one attempt, and what gRPC reports by them.
type attemptOptions struct {
	header   metadata.MD // nil if none arrived, or nobody asks (callOptions.header)
	trailer  metadata.MD
	peer     peer.Peer
	ended    atomic.Bool                   // gRPC has ended the attempt, in any goroutine, and writes here no more
	repeated atomic.Bool                   // gRPC has ended more than one attempt with these options
	retrier  *Retrier                      // is told if gRPC ends more than one attempt with these options
	onEnd    endListener                   // is called when gRPC has ended the attempt; may be nil
	waiter   atomic.Pointer[chan struct{}] // is closed when gRPC has ended the attempt; nil if nobody waits

	array [own + 12]grpc.CallOption // our own, then room for those of the call
}

// endListener is told when gRPC has ended an attempt, in any goroutine.
type endListener interface{ onFinish(err error) }

// own is the number of options that every attempt gets from us.
const own = 4

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

// reset makes a ready for another attempt, after one that gRPC has ended. gRPC leaves its targets alone where
// it has nothing to report, so what the attempt left there must go. The options stay until others take their
// place: an inner interceptor that still reads them, though it should not, must not find nil there.
func (a *attemptOptions) reset() {
	if a.header != nil || a.trailer != nil {
		a.header, a.trailer = nil, nil
	}
	if a.peer.Addr != (nowhere{}) {
		a.peer = peer.Peer{Addr: nowhere{}}
	}
	if a.ended.Load() {
		a.ended.Store(false)
		a.repeated.Store(false)
	}
	a.retrier = nil // the next attempt may be another's, to whom what happens to it is nothing
}

// end is gRPC's OnFinish. It is called twice for an attempt that an inner interceptor has made twice; but so it is by
// gRPC itself, if the context is over when the stream is to be created.
func (a *attemptOptions) end(err error) {
	if a.ended.Swap(true) {
		a.repeated.Store(true)
		if a.retrier != nil && (err == nil || answered(err)) {
			a.retrier.warnOnce(&innerRetries, "", "")
		}
	}
	if waiter := a.waiter.Swap(nil); waiter != nil {
		close(*waiter)
	}
	if a.onEnd != nil {
		a.onEnd.onFinish(err)
	}
}

// longestEnd is how long the end of an attempt waits for gRPC's OnFinish. Only an inner interceptor that does not pass
// its options on lets that time pass.
const longestEnd = 100 * time.Millisecond

// awaitEnd waits until gRPC has ended an attempt whose call has returned: another goroutine of gRPC may do that, and
// write trailer and peer meanwhile. One goroutine may call it.
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

// target is the attempt's own target in place of one of the caller's.
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

// nowhere is the address of a peer that gRPC has not set. gRPC sets the whole peer as soon as there is a
// stream, to one without an address where a connection has none.
type nowhere struct{}

func (nowhere) Network() string { return "" }
func (nowhere) String() string  { return "" }

// unsent reports that the attempt provably never left the client: gRPC has ended it, and had no stream to
// take a peer from. An inner interceptor that keeps options to itself proves nothing.
func (a *attemptOptions) unsent() bool { return a.ended.Load() && a.peer.Addr == nowhere{} }

// from is the peer, empty if there was none.
func (a *attemptOptions) from() peer.Peer {
	if a.peer.Addr == (nowhere{}) {
		return peer.Peer{}
	}
	return a.peer
}
