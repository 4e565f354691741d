// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/policy"
)

// try is one attempt of a stream.
type try struct {
	lane

	stream grpc.ClientStream // nil if it could not be opened
	watch  *watch
	sent   int  // messages replayed
	closed bool // the close is replayed

	// Only of those that may run beside others.
	opened  bool        // its stream is there
	sending bool        // somebody is sending to it
	deaf    bool        // it takes nothing more
	hearing bool        // a goroutine of ours waits for its answer
	headers metadata.MD // that it has brought so far
}

// try opens an attempt.
func (s *stream) try(t *try, a *oldAttempt, ctx context.Context, opts []grpc.CallOption) (err error) { //nolint:revive // the context is the attempt's
	t.oldAttempt = a
	ctx, t.cancel = context.WithCancel(ctx)
	ctx, t.watch = s.watched(ctx)
	a.onEnd = func() { s.ended(t) }
	t.stream, err = s.open(ctx, s.desc, s.cc, s.method, slices.Clip(opts)...)
	return err
}

// another opens an attempt after the first.
func (s *stream) another() (*try, error) {
	t, a := new(try), s.oldCall.another()
	return t, s.try(t, a, laterAttempt(s.ctx, s.state.Attempts-1), s.optionsAgain(a))
}

// lead finds the next attempt after t, which failed with err. It returns the error for the caller if
// none may follow. Only the leader may call it; it leads no more when it returns.
func (s *stream) lead(t *try, err error) error {
	if s.race != nil {
		return s.fall(t, err)
	}
	for {
		t.watch.stop()
		t.cancel()
		s.oldAttempt = t.settled()
		s.judge(nil, err, t.watch)
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
	s.kept.Store(nil)
	s.replaying = s.replay.length > 0 || s.replay.closed
	if min(s.policy.MaxAttempts(), s.state.MaxAttempts) < 2 {
		s.commit(t, policy.CommitNone) // nothing need be kept, but that is not why no other follows
	}
	s.handOver(t)
	s.tell()
	if s.replaying {
		go s.resend(t)
	}
	s.mu.Unlock()
	if t.ended.Load() {
		s.ended(t) // too early for its hook to know it
	}
}
