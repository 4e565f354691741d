// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/streams"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind that may have more than one attempt. The machine says who does what next: each
// call of the application, and the goroutine of each attempt, is a task of it. The stream does that without the lock,
// tells the machine what has come of it, and does what the machine asks for beside (see package streams).
//
// Nothing of gRPC's, of inner interceptors', codecs' or observers' runs under the lock. Who reports the end of an attempt
// also runs what observers are to be told, before it returns.
type stream struct {
	sends    atomic.Pointer[streamAttempt] // the application sends to it without asking
	receives atomic.Pointer[streamAttempt] // and receives from it
	keeps    atomic.Bool                   // what the application sends is kept

	desc    *grpc.StreamDesc
	open    grpc.Streamer
	resume  resumption
	scratch []byte // of the sender
	racing  bool   // RecvMsg is to say what messages are made of

	mu       sync.Mutex // guards all below, and the engine
	changed  sync.Cond  // is told of every new version
	version  int        // changes when those who wait are to ask again
	machine  streams.Call
	call     call
	attempts []*streamAttempt // by number
	replay   replayBuffer
	replies  messageType   // of the message that RecvMsg waits with
	begun    bool          // the engine has
	unwatch  func() bool   // ends the watch over the call's context; nil: there is none
	timer    *time.Timer   // wakes the engine; nil until it is needed
	armed    time.Duration // for when the timer is set; attempts.Never: it is not
	nap      *nap          // of the goroutine that waits while nothing runs
	overdue  *time.Timer
	final    error  // what RecvMsg returns when the call is over: io.EOF after success
	caught   caught // of inner interceptors and callbacks
	events   eventQueue
	array    [2]*streamAttempt
}

func (r *Retrier) stream(with coexistence) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		first := new(streamAttempt)
		first.init()
		c := call{callState: callState{retrier: r, cc: cc, method: method, with: with}}
		of, codec := c.read(opts, &first.attemptOptions), codecOf(opts)
		if c.flags&disabled != 0 || codec == nil {
			return open(ctx, desc, cc, method, opts...)
		}
		c.announce(ctx, of)
		if single(c.policy, &c.options, c.flags) {
			c.uploads = desc.ClientStreams
			s := &singleStream{desc: desc, call: c, attempt: &first.attempt}
			return s.openSingle(open)
		}
		s := &stream{desc: desc, open: open, call: c}
		s.call.options.header, s.call.outside.ctx = true, ctx
		s.call.alone, s.call.uploads = !r.streamsInParallel(codec), desc.ClientStreams
		s.resume = resumptionOf(desc, opts)
		s.replay = replayBuffer{codec: codec, limit: replayLimit(opts), total: &r.replayed, sum: r.maxReplayed}
		s.changed.L, s.events.mu, s.armed, s.attempts = &s.mu, &s.mu, attempts.Never, append(s.array[:0], first)
		return s.begin()
	}
}

// begin starts the engine, and waits until the stream can be used.
func (s *stream) begin() (grpc.ClientStream, error) {
	s.machine.Start(&s.call.engine, s.settings(), attempts.Now{}, attempts.Step{Wake: attempts.Never})
	s.enter(s.start)
	t := task{Task: streams.Task{Kind: streams.NewStream}}
	if s.run(&t); t.order.Returns == streams.Final {
		return nil, t.final
	}
	return s, nil
}

func (s *stream) start() {
	now := s.call.now()
	step := s.call.begin(now)
	if !step.Over {
		s.prepare(s.attempts[0], step.Send, now)
	}
	s.machine.Start(&s.call.engine, s.settings(), now, step)
	if s.begun = true; !step.Over {
		s.watch()
	}
}

// watch has the stream learn that the call's context is over, if it can be. s.mu must be held.
func (s *stream) watch() {
	if s.call.ctx.Done() != nil {
		s.unwatch = context.AfterFunc(s.call.ctx, s.gone)
	}
}

// settings are what the machine is to know. s.mu must be held, but in begin.
func (s *stream) settings() streams.Settings {
	o := &s.call.options
	one := min(s.call.policy.MaxAttempts(), o.maxAttempts) < 2 || o.mode == policy.ModeOff
	s.racing = s.call.policy.Parallel() && !one && !s.call.alone && !s.call.uploads && o.mode == policy.ModeEnforce
	return streams.Settings{
		ClientStreams: s.desc.ClientStreams, ServerStreams: s.desc.ServerStreams,
		Races: s.racing, Single: one, Resumes: s.resume.next != nil,
	}
}

// adapt takes the policy of a call that began before its connection had received any: opening its first attempt
// has waited for that. s.mu must be held.
func (s *stream) adapt() {
	if s.machine.Over() || !s.call.catchUp() {
		return
	}
	s.call.limit()
	if s.unwatch != nil {
		s.unwatch()
	}
	s.watch()
	step := s.call.adapt(s.call.now())
	s.machine.Adapt(s.settings(), step)
}

// enter locks s.mu, lets f tell and ask the machine, and does what the machine asks for. Then observers are told, without
// the lock. If a callback panics that the engine calls (budget, breaker), the call is over.
func (s *stream) enter(f func()) {
	func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		returned := false
		defer func() {
			if !returned {
				s.abort(recover())
			}
		}()
		s.look()
		f()
		s.act(s.machine.Exit())
		returned = true
	}()
	s.notify()
}

// look takes one reading of the clock, the channel's state and the call's context. s.mu must be held.
func (s *stream) look() {
	if s.begun {
		now := s.call.now()
		s.machine.Enter(now, s.call.gone(now))
	}
}

// abort ends the call since a callback, or an inner interceptor, has panicked with p. s.mu must be held.
func (s *stream) abort(p any) {
	s.caught.note(p)
	s.machine.Abort()
	s.act(s.machine.Exit())
}

// act does what the machine asks for. s.mu must be held.
func (s *stream) act(a streams.Acts) {
	for _, n := range a.Cancel {
		s.attempts[n-1].cancel()
	}
	for _, n := range a.Go {
		t := s.attempt(n)
		go s.run(&task{Task: streams.Task{Kind: streams.Goroutine, Attempt: n}, on: t})
	}
	for _, e := range a.Report {
		go s.report(e)
	}
	if a.Released {
		s.replay.release()
		s.leaveRequest()
	}
	if a.Over {
		s.finish()
	}
	s.schedule(&a)
	direct(&s.sends, s.attempts, a.Sends)
	direct(&s.receives, s.attempts, a.Receives)
	if keeps := s.machine.Keeps(); keeps != s.keeps.Load() {
		s.keeps.Store(keeps)
	}
	if a.Moved {
		s.version++
		s.changed.Broadcast()
	}
}

// direct makes attempt n the one in p, none for 0.
func direct(p *atomic.Pointer[streamAttempt], all []*streamAttempt, n int) {
	var t *streamAttempt
	if n > 0 {
		t = all[n-1]
	}
	if p.Load() != t {
		p.Store(t)
	}
}

// finish fixes the answer of a call that is over, and has everybody told. s.mu must be held.
func (s *stream) finish() {
	s.replay.close()
	if s.unwatch != nil {
		s.unwatch()
	}
	for _, timer := range []*time.Timer{s.timer, s.overdue} {
		if timer != nil {
			timer.Stop()
		}
	}
	reported := &unreported
	if n := s.machine.Answer(); n > 0 {
		reported = s.attempts[n-1].report()
	}
	err := s.call.answer(reported)
	if s.final = err; err == nil {
		s.final = io.EOF
	}
	s.events.push(func() {
		s.call.cancelTimeout()
		s.call.notifyEnd(err)
	})
}

// notify tells observers what has happened. If one panics, the call is over, and the panic comes up in the application's
// next call.
func (s *stream) notify() { s.events.tell(func(event func()) { s.outside(event) }) }
