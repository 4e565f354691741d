// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/budget"
)

// stream is a call of any streaming kind. Until the application has seen part of an attempt, what it
// sends is kept, and an attempt that fails may be followed by another one that is sent the same; from
// then on it is committed to that attempt, and the stream only hands through.
//
// Who finds that the running attempt has failed takes the lead: it alone asks the policy, waits and
// opens the next attempt, while the others wait for it. Nobody holds the lock while gRPC or a
// backoff blocks.
type stream struct {
	*call // its state belongs to the leader, and before that to the attempt's watch

	desc  *grpc.StreamDesc
	open  grpc.Streamer
	codec *codec
	end   context.CancelFunc // of the call's context

	resumption resumption

	direct atomic.Pointer[try] // the attempt that the call is committed to, when nothing is left to replay

	mu        sync.Mutex // guards all below
	changed   chan struct{}
	running   *try
	led       bool // somebody leads
	receiving bool // the application is receiving from the running attempt
	replaying bool // the running attempt is being sent what was sent before
	committed bool
	done      bool
	final     error // what RecvMsg returns once done: io.EOF after success
	early     *encoded
	replay    replay
}

// try is one attempt of a stream.
type try struct {
	*attempt

	stream grpc.ClientStream // nil if it could not be opened
	cancel context.CancelFunc
	watch  *watch
	sent   int  // messages replayed
	closed bool // the close is replayed
}

func (r *Retrier) stream(with coexistence) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		a := newAttempt()
		p, ours, w := r.read(method, opts, a)
		codec := codecOf(opts)
		if w&pass != 0 || codec == nil {
			return open(ctx, desc, cc, method, opts...)
		}
		b := r.payer(p, cc, method)
		start := budget.Now()
		c := new(newCall(r, method, cc, with, b, start, a))
		c.policy, c.caller, c.wishes = p, opts, w
		c.rest = append(slices.Clip(ours[own:]), grpc.ForceCodecV2(codec))
		s := &stream{
			call: c,
			desc: desc, open: open, codec: codec, resumption: resumptionOf(desc, opts), changed: make(chan struct{}), led: true,
			replay: replay{limit: replayLimit(opts), total: &r.replayed, sum: r.maxReplayed},
		}
		if err := s.begin(ctx); err != nil {
			return nil, err
		}
		return s, nil
	}
}

// begin opens the first attempt, or those that follow if it cannot be opened.
func (s *stream) begin(ctx context.Context) error {
	if timeout := s.policy.Spec().Timeout; timeout > 0 {
		s.ctx, s.end = context.WithTimeout(ctx, timeout)
	} else {
		s.ctx, s.end = context.WithCancel(ctx)
	}
	if refused := s.call.begin(); refused != nil {
		s.end()
		return refused
	}
	t, err := s.try(s.attempt, firstAttempt(s.ctx), s.rest)
	if err != nil {
		return s.lead(t, err)
	}
	s.install(t)
	return nil
}

// try opens an attempt.
func (s *stream) try(a *attempt, ctx context.Context, rest []grpc.CallOption) (*try, error) { //nolint:revive // the context is the attempt's
	t := &try{attempt: a}
	ctx, t.cancel = context.WithCancel(ctx)
	ctx, t.watch = s.watched(ctx)
	a.hook = func() { s.ended(t) }
	var err error
	t.stream, err = s.open(ctx, s.desc, s.cc, s.method, a.options(rest)...)
	return t, err
}

// another opens an attempt after the first.
func (s *stream) another() (*try, error) {
	return s.try(s.call.another(), laterAttempt(s.ctx, s.state.Attempts-1), s.again())
}

// lead finds the next attempt after t, which failed with err. It returns the error for the caller if
// none may follow. Only the leader may call it; it leads no more when it returns.
func (s *stream) lead(t *try, err error) error {
	for {
		t.watch.stop()
		t.cancel()
		s.attempt = t.settled()
		s.judge(nil, err)
		if over, final := s.follow(err, t.watch); over {
			s.close(t, final)
			return final
		}
		if t, err = s.another(); err == nil {
			s.install(t)
			return nil
		}
	}
}

// install makes t the running attempt, and has it sent what was sent before. What a client streams
// is replayed beside the receiver: a server that waits to be read would else block both.
func (s *stream) install(t *try) {
	s.mu.Lock()
	s.running, s.led = t, false
	s.replaying = len(s.replay.messages) > 0 || s.replay.closed
	if s.policy.MaxAttempts() < 2 {
		s.commit(t)
	}
	s.tell()
	if s.replaying {
		go s.resend(t)
	}
	s.mu.Unlock()
	if t.ended.Load() {
		s.ended(t) // too early for its hook to know it
	}
}

// tell wakes those that wait for a change. It requires mu.
func (s *stream) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait returns when something has changed. It requires mu, and gives it up meanwhile.
func (s *stream) wait() {
	changed := s.changed
	s.mu.Unlock()
	<-changed
	s.mu.Lock()
}

// Context commits the call, as gRPC's own does, and is then the context of the attempt.
func (s *stream) Context() context.Context {
	t := s.pin()
	if t.stream == nil {
		return s.ctx
	}
	return t.stream.Context()
}

// Trailer returns the trailer of the attempt that was the answer. Only after RecvMsg has returned an
// error.
func (s *stream) Trailer() metadata.MD {
	t := s.pin()
	if t.stream == nil {
		return nil
	}
	return t.stream.Trailer()
}
