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
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/streams"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind that may have more than one attempt. Each call of the application, and the goroutine
// of each attempt, is a task of the machine (package streams), which decides the next step. The stream takes the step without
// the lock, reports the result to the machine, and carries out the machine's other requests.
//
// gRPC, inner interceptors, codecs and observers never run under the lock. The goroutine that reports the end of an attempt
// also notifies the observers, before it returns.
type stream struct {
	sends    atomic.Pointer[streamAttempt] // the application sends to it directly, if set
	receives atomic.Pointer[streamAttempt] // the application receives from it directly, if set
	keeps    atomic.Bool                   // sent messages are kept

	desc    *grpc.StreamDesc
	open    grpc.Streamer
	resume  resumption
	encoder encoder // of the sender
	racing  bool    // the type of replies comes from RecvMsg

	mu       sync.Mutex // guards all below, and the engine
	changed  sync.Cond  // broadcasts each new version
	version  int        // changes when waiting tasks must ask again
	machine  streams.Call
	call     *call
	attempts []*streamAttempt // by number
	replay   replayBuffer
	replies  messageType   // of RecvMsg's message
	begun    bool          // the engine has started
	unwatch  func() bool   // stops watching the call's context; may be nil
	timer    *time.Timer   // wakes the engine; nil until it is needed
	armed    time.Duration // the timer's time, or attempts.Never
	nap      *nap          // of the goroutine that waits while nothing runs
	overdue  *time.Timer
	untold   atomic.Bool // the call is over, and the caller's OnFinish must run
	caught   caught      // of inner interceptors and callbacks
	events   eventQueue
	array    [2]*streamAttempt
}

func (r *Retrier) stream(with coexistence) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		first := new(streamAttempt)
		first.init()
		c := &call{request: request{retrier: r, cc: cc, method: method, with: with}}
		c.readRequest(opts, &first.attemptOptions)
		if c.flags&disabled != 0 {
			return open(ctx, desc, cc, method, opts...)
		}
		c.announce(ctx)
		if single(c.policy, &c.options) {
			c.uploads = desc.ClientStreams
			s := &singleStream{desc: desc, call: c, attempt: &first.attempt}
			return s.openSingle(open)
		}
		s := &stream{desc: desc, open: open, call: c}
		s.call.alone, s.call.uploads = !r.streamsInParallel(&c.options), desc.ClientStreams
		s.resume = resumptionOf(desc, opts)
		s.replay = replayBuffer{limit: replayLimit(opts), total: &r.replayed, sum: r.maxReplayed}
		s.changed.L, s.events.mu, s.armed, s.attempts = &s.mu, &s.mu, attempts.Never, append(s.array[:0], first)
		return s.begin()
	}
}

// begin starts the engine, and waits until the stream is usable.
func (s *stream) begin() (grpc.ClientStream, error) {
	s.machine.Init(&s.call.engine, s, s.machineSettings())
	s.enter(s.start)
	t := task{Task: streams.Task{Kind: streams.NewStream}}
	if s.run(&t); t.order.Returns == streams.Final {
		return nil, t.order.Err
	}
	return s, nil
}

func (s *stream) start() {
	now := s.call.now()
	set := s.call.prepareSettings()
	set.Uploads = true // until CloseSend, the application takes its time
	step := s.call.engine.Start(set, now)
	if !step.Over {
		s.prepare(s.attempts[0], step.Send, now)
	}
	s.machine.Start(now, step)
	if s.begun = true; !step.Over {
		s.watch()
	}
}

// watch makes the stream notice the end of the call's context, if it has one. s.mu must be held.
func (s *stream) watch() {
	if s.call.ctx.Done() != nil {
		s.unwatch = context.AfterFunc(s.call.ctx, s.gone)
	}
}

// machineSettings returns the machine's settings.
func (s *stream) machineSettings() streams.Settings {
	o := &s.call.options
	one := min(s.call.policy.MaxAttempts(), o.maxAttempts) < 2 || o.mode == policy.ModeOff
	s.racing = s.call.policy.Parallel() && !one && !s.call.alone && !s.call.uploads && o.mode == policy.ModeEnforce
	return streams.Settings{
		ClientStreams: s.desc.ClientStreams, ServerStreams: s.desc.ServerStreams,
		Races: s.racing, Single: one, Resumes: s.resume.next != nil,
	}
}

// enter locks s.mu, calls f, which uses the machine, and carries out the machine's requests. Then it notifies observers, without
// the lock. If a callback of the engine (budget, breaker) panics, the call is over.
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

// look reads the clock and the call's context once. s.mu must be held.
func (s *stream) look() {
	if !s.begun {
		return
	}
	wall := time.Now()
	now := attempts.Now{At: clock.At(wall), Wall: wall}
	s.machine.Enter(now, s.call.contextGone(now))
}

// lookAround also reads chance and the channel's state, before events on which the engine may send an attempt. s.mu must be held.
func (s *stream) lookAround() {
	now := s.call.now()
	s.machine.Enter(now, s.call.reasonGone(now))
}

// abort ends the call after a callback or an inner interceptor has panicked with p. s.mu must be held.
func (s *stream) abort(p any) {
	s.caught.note(p)
	s.machine.Abort()
	s.act(s.machine.Exit())
}

// act carries out the machine's requests. s.mu must be held.
func (s *stream) act(a *streams.Acts) {
	for _, n := range a.Cancel {
		s.attempts[n-1].cancel()
	}
	for _, n := range a.Go {
		t := s.attempt(n)
		go s.run(&task{Task: streams.Task{Kind: streams.Goroutine, Attempt: n}, on: t})
	}
	for _, e := range a.Report {
		go s.reportEnd(e, nil)
	}
	if a.Released {
		s.replay.release()
	}
	if a.Over {
		s.finish()
	}
	s.schedule(a)
	direct(&s.sends, s.attempts, a.Sends)
	direct(&s.receives, s.attempts, a.Receives)
	if keeps := s.machine.Keeps(); keeps != s.keeps.Load() {
		s.keeps.Store(keeps)
	}
	if a.Moved {
		s.version++
		s.changed.Broadcast()
	}
	s.machine.Acted()
}

// direct stores attempt n in p, or nil for 0.
func direct(p *atomic.Pointer[streamAttempt], all []*streamAttempt, n int) {
	var t *streamAttempt
	if n > 0 {
		t = all[n-1]
	}
	if p.Load() != t {
		p.Store(t)
	}
}

// Conclude implements [streams.Caller]. It sets the answer of a call that is over, and runs no user code. s.mu must be held.
func (s *stream) Conclude(attempt int) (tell bool, final error) {
	reported := &unreported
	if attempt > 0 {
		reported = s.attempts[attempt-1].reported()
	}
	tell = s.call.options.notify
	s.untold.Store(tell)
	if err := s.call.answer(reported); err != nil {
		return tell, err
	}
	return tell, io.EOF
}

// result returns the error of a call that is over.
func (s *stream) result() error {
	if final := s.machine.Final(); final != io.EOF {
		return final
	}
	return nil
}

// finish releases what only a running call needs, and queues the notification of its end. s.mu must be held.
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
	s.events.push(notice{}) // the end
}

// notify runs the caller's OnFinish, for which the application's call waits, and delivers queued events to observers, for which
// nothing waits. If one panics, the call is over, and the application's next call repeats the panic.
func (s *stream) notify() {
	if s.untold.Load() && s.untold.CompareAndSwap(true, false) {
		s.tellCaller()
	}
	s.events.tell(func(n notice) {
		s.outside(func() {
			if n.told != nil {
				s.call.deliverNotice(n)
				return
			}
			s.call.cancelTimeout()
			s.call.notifyEnd(s.result())
		})
	})
}

func (s *stream) tellCaller() {
	s.mu.Lock()
	s.machine.Telling()
	s.mu.Unlock()
	defer s.enter(s.machine.Told)
	s.outside(func() { s.call.options.finished(s.result()) })
}
