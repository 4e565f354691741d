// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind. Until the application has seen part of an attempt, what it
// sends is kept, and an attempt that fails may be followed by another one that is sent the same; from
// then on it is committed to that attempt, and the stream only hands through.
//
// Who finds that the running attempt has failed takes the lead: it alone asks the policy, waits and
// opens the next attempt, while the others wait for it. Nobody holds the lock while gRPC or a
// backoff blocks.
type stream struct {
	// What every message reads stands together. While the running attempt is sent what was sent before, it
	// is neither direct nor kept.
	direct  atomic.Pointer[try] // the call is committed to it
	kept    atomic.Pointer[try] // what it is sent is kept; without meaning when there is a direct one
	sending sending
	codec   codec
	encoder encoder
	through bool // a message that is received of a direct attempt is nobody's business
	desc    *grpc.StreamDesc
	race    *streamRace // leads until the call is committed; nil if attempts do not run beside each other

	mu        sync.Mutex // guards all up to first
	led       bool       // somebody leads
	receiving bool       // the application is receiving from the running attempt
	heading   bool       // it waits for that attempt's headers
	replaying bool       // the running attempt is being sent what was sent before
	committed bool
	done      bool
	running   *try
	replay    replay
	early     *encoded
	final     error // what RecvMsg returns once done: io.EOF after success
	changed   sync.Cond

	first      try // is where it stands for most streams
	resumption resumption
	open       grpc.Streamer
	end        context.CancelFunc // of the policy's timeout; nil without one

	oldCall // its state belongs to the leader, and before that to the attempt's watch
}

func (r *Retrier) stream(with coexistence) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		a := newOldAttempt()
		of, p, o, w := r.read(cc, method, opts, &a.attemptOptions)
		found, name := codecOf(opts)
		if w&disabled != 0 || found == nil {
			return open(ctx, desc, cc, method, opts...)
		}
		s := &stream{
			desc: desc, open: open, resumption: resumptionOf(desc, opts), led: true,
			replay: replay{limit: replayLimit(opts), total: &r.replayed, sum: r.maxReplayed},
		}
		o.shared = append(o.shared, grpc.ForceCodecV2(&s.codec))
		o.header = true
		s.options = o
		s.prepare(r, method, cc, with, r.budgetFor(of, p, cc, method), budget.Now(), a)
		s.changed.L = &s.mu
		s.through = desc.ServerStreams && s.resumption.next == nil
		s.codec = codec{found, name, s}
		s.encoder.able = ownCodec(found)
		s.policy, s.flags = p, w
		if err := s.begin(ctx, o.forAttempt(&a.attemptOptions)); err != nil {
			return nil, err
		}
		return s, nil
	}
}

// begin opens the first attempt, with the given options, or those that follow if it cannot be opened.
func (s *stream) begin(ctx context.Context, opts []grpc.CallOption) error {
	s.ctx = ctx
	if timeout := s.policy.Spec().Timeout; timeout > 0 {
		s.ctx, s.end = context.WithTimeout(ctx, timeout)
	}
	if refused := s.oldCall.begin(); refused != nil {
		s.release()
		return refused
	}
	if s.race = s.newRace(); s.race != nil {
		return s.start(opts)
	}
	t := &s.first
	err := s.try(t, s.oldAttempt, firstAttempt(s.ctx), opts)
	s.catchUp()
	if err != nil {
		return s.lead(t, err)
	}
	s.install(t)
	return nil
}

// release lets go of the call's own context.
func (s *stream) release() {
	if s.end != nil {
		s.end()
	}
}

// tell wakes those that wait for a change. It requires mu.
func (s *stream) tell() { s.changed.Broadcast() }

// wait returns when something has changed. It requires mu, and gives it up meanwhile.
func (s *stream) wait() { s.changed.Wait() }

// Context commits the call, as gRPC's own does, and is then the context of the attempt.
func (s *stream) Context() context.Context {
	t := s.pin(policy.CommitContext)
	if t.stream == nil {
		return s.ctx
	}
	return t.stream.Context()
}

// Trailer returns the trailer of the attempt that was the answer. Only after RecvMsg has returned an
// error.
func (s *stream) Trailer() metadata.MD {
	t := s.pin(policy.CommitTrailer)
	if t.stream == nil {
		return nil
	}
	return t.stream.Trailer()
}
