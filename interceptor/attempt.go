// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// attempt is what gRPC reports of the running attempt. The caller's Header, Trailer, Peer and
// OnFinish options are not given to attempts: gRPC would write to them once for each (law 1).
type attempt struct {
	header  metadata.MD // nil if none arrived, or nobody asks (see wantHeader)
	trailer metadata.MD
	peer    peer.Peer
	ended   bool // gRPC itself has ended the attempt: our options have reached it
}

// own is the number of options that every attempt gets from us.
const own = 4

// options puts the attempt's own options at the front of array, once and for all.
func (a *attempt) options(array *[own + 12]grpc.CallOption) {
	*array = [own + 12]grpc.CallOption{
		grpc.Trailer(&a.trailer),
		grpc.Peer(&a.peer),
		grpc.OnFinish(a.onFinish),
		insideOption{},
	}
}

func (a *attempt) onFinish(error) { a.ended = true }

// reset makes ready for the next attempt. gRPC leaves its targets alone where it has nothing to
// report, so what the attempt before left there must go.
func (a *attempt) reset() { *a = attempt{} }

// unsent reports that the attempt provably never left the client: gRPC has ended it, and had no
// stream to take a peer from. An interceptor further in that keeps options to itself proves nothing.
func (a *attempt) unsent() bool { return a.ended && a.peer.Addr == nil }

// readOptions makes the options of the attempts: our own, then the caller's without those that are
// told of the call's end, then the policy's where the caller says nothing stricter. It reports false
// for a call that is to pass by.
func (c *call) readOptions() bool {
	var waits bool
	var send, receive *int
	for _, o := range c.caller {
		switch o := o.(type) {
		case disableOption:
			return false
		case insideOption:
			c.retrier.warnNested()
			return false
		case policyOption:
			c.policy = o.policy
		case idempotentOption:
			c.safe = true
		case grpc.HeaderCallOption:
			c.told = true
			c.wantHeader()
			continue
		case grpc.TrailerCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption:
			c.told = true
			continue
		case grpc.FailFastCallOption:
			waits = true
		case grpc.MaxSendMsgSizeCallOption:
			send = &o.MaxSendMsgSize
		case grpc.MaxRecvMsgSizeCallOption:
			receive = &o.MaxRecvMsgSize
		}
		c.opts = append(c.opts, o)
	}
	if c.policy == nil {
		c.policy = c.retrier.single
	}
	spec := c.policy.Spec()
	if spec.WaitForReady != nil && !waits {
		c.opts = append(c.opts, grpc.WaitForReady(*spec.WaitForReady))
	}
	if stricter(spec.MaxRequestBytes, send) {
		c.opts = append(c.opts, grpc.MaxCallSendMsgSize(*spec.MaxRequestBytes))
	}
	if stricter(spec.MaxResponseBytes, receive) {
		c.opts = append(c.opts, grpc.MaxCallRecvMsgSize(*spec.MaxResponseBytes))
	}
	if c.policy.CommitsOnHeaders() {
		c.wantHeader()
	}
	return true
}

// stricter reports whether a policy has a limit, and one below the caller's.
func stricter(policys, callers *int) bool {
	return policys != nil && (callers == nil || *policys < *callers)
}

// wantHeader lets attempts bring their headers. gRPC copies what it hands over, so a first attempt
// does without where neither caller nor policy asks: in a call that succeeds, only the trailer costs
// anything (law 10). Later attempts always bring theirs, for a retry-after in them.
func (c *call) wantHeader() {
	if !c.headers {
		c.headers = true
		c.opts = append(c.opts, grpc.Header(&c.attempt.header))
	}
}

// deliver gives the caller what the last attempt brought, and tells it of the call's end.
func (c *call) deliver(err error) {
	if !c.told {
		return
	}
	for _, o := range c.caller {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = c.attempt.header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = c.attempt.trailer
		case grpc.PeerCallOption:
			*o.PeerAddr = c.attempt.peer
		}
	}
	for _, o := range c.caller {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}
