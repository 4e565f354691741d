// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind. Until the application has seen part of an attempt, what it sends is
// kept, and other attempts may follow one that fails, or run beside one that is slow. From then on the call is
// committed to that attempt, and the stream only hands through.
//
//	   ┌──────────────── cut, and to be resumed ─────────────────┐
//	   ▼                                                         │
//	opening ──────────────► uncommitted ─────── commit ────► committed
//	   ▲                      │   │  ▲                           ▲
//	   └── it failed: retry ──┘   │  └── one runs ─────┐         │
//	                              └── it is slow ─► racing ───── commit
//
//	from anywhere ── the last attempt has ended, and none follows ──► done
//
// What commits stands at [policy.Commit]. The engine decides all of that, and hears of everything under mu, which
// nobody holds while gRPC, an inner interceptor or an observer runs. An attempt has one sender and one reader at a
// time: the application while it can do that by itself, else a goroutine.
type stream struct {
	direct atomic.Pointer[streamAttempt] // the call is committed to it, and nothing stands in between
	simple bool                          // what a direct attempt brings needs no look; RecvMsg alone changes it

	desc    *grpc.StreamDesc
	open    grpc.Streamer
	resume  resumption
	scratch []byte // of the sender

	mu        sync.Mutex // guards all below, and the engine
	changed   sync.Cond  // is told of every change
	call      call
	races     bool             // attempts may run beside each other
	single    bool             // no other attempt can follow the first
	timer     *time.Timer      // calls wake; nil until it is needed
	running   []*streamAttempt // in the order in which they were sent
	chosen    *streamAttempt   // the call is committed to it; nil before that, and when it is to be resumed
	answer    *streamAttempt   // the last that has ended and may be the call's answer; nil if there is none
	replay    replayBuffer
	into      any         // what RecvMsg waits to receive into; nil if it does not wait
	replies   messageType // of into, where attempts race
	asking    int         // how many Header calls wait
	usable    bool        // an attempt could be opened
	failure   error       // the last that an attempt has ended with, and is no end of a context
	over      bool        // the engine is done with the call
	done      bool        // everybody was told so, and final is set
	final     error       // what RecvMsg returns then: io.EOF after success
	caught    caught      // of inner interceptors
	events    []func()    // what observers are still to be told
	notifying bool        // somebody tells them
	first     *streamAttempt
	array     [2]*streamAttempt // of running, for most calls
}

func (r *Retrier) stream(with coexistence) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		first := new(streamAttempt)
		first.init()
		of, p, o, flags := r.read(cc, method, opts, &first.attemptOptions)
		codec := codecOf(opts)
		if flags&disabled != 0 || codec == nil {
			return open(ctx, desc, cc, method, opts...)
		}
		if r.tellsStarts {
			ctx = r.startCall(ctx, method, cc)
		}
		ctx = r.withBackends(ctx, cc, p, o.maxAttempts, flags)
		c := call{
			retrier: r, ctx: ctx, cc: cc, method: method, policy: p, budget: r.budgetFor(of, p, cc, method, &o),
			options: o, flags: flags, with: with, start: budget.Now(),
			known: r.knownFor(of, p, cc, method, &o),
		}
		if single(p, &o, flags) {
			s := &singleStream{desc: desc, call: c, attempt: &first.attempt}
			return s.openSingle(open)
		}
		s := &stream{desc: desc, open: open, call: c, first: first}
		s.call.options.header, s.call.alone = true, !r.streamsInParallel(codec)
		s.resume = resumptionOf(desc, opts)
		s.simple = desc.ServerStreams && s.resume.next == nil && !s.call.known.Admits()
		s.replay = replayBuffer{codec: codec, limit: replayLimit(opts), total: &r.replayed, sum: r.maxReplayed}
		s.changed.L, s.running = &s.mu, s.array[:0]
		return s.begin()
	}
}

// begin opens the first attempt, or those that follow if it cannot be opened.
func (s *stream) begin() (grpc.ClientStream, error) {
	var first *streamAttempt
	s.withCallbacks(func() { first = s.start() })
	if first != nil {
		s.openAttempt(first)
	}
	s.mu.Lock()
	defer s.unlock()
	for !s.usable && !s.done {
		s.wait()
	}
	s.rethrow()
	if !s.usable {
		return nil, s.final
	}
	return s, nil
}

// start has the engine begin. It returns the first attempt, nil if the call is refused.
func (s *stream) start() *streamAttempt {
	s.mu.Lock()
	defer s.unlock()
	now := s.call.now()
	step := s.call.begin(now)
	s.learn()
	if step.Over {
		s.act(step, now)
		return nil
	}
	s.add(s.first, step.Send, now)
	step.Send = 0
	s.act(step, now)
	return s.first
}

// learn takes from the policy what attempts there may be. It requires mu.
func (s *stream) learn() {
	s.single = min(s.call.policy.MaxAttempts(), s.call.options.maxAttempts) < 2 || s.call.options.mode == policy.ModeOff
	s.races = s.call.policy.Parallel() && !s.single && !s.call.alone
}

// act does what the engine asks for. It requires mu.
func (s *stream) act(step attempts.Step, now attempts.Now) {
	for _, t := range s.running {
		if slices.Contains(step.Cancel, t.number) {
			s.abandon(t)
		}
	}
	if step.Over {
		s.finish()
	}
	if step.Send > 0 {
		t := new(streamAttempt)
		t.init()
		s.add(t, step.Send, now)
		go s.run(t)
	}
	s.schedule(step, now)
	s.changed.Broadcast()
}

// schedule has the engine look again when it asks for that. While nothing runs, gRPC does not look after the
// context and the connection. It requires mu.
func (s *stream) schedule(step attempts.Step, now attempts.Now) {
	switch {
	case step.Wake == attempts.Never:
		if s.timer != nil {
			s.timer.Stop()
		}
	case s.call.engine.Running() == 0:
		go s.sleep(step.Wake, step.Watch)
	case step.Wake <= now.At:
		go s.wake() // a timer of nothing adds nothing, and two at once crash the race detector in a synctest bubble
	case s.timer == nil:
		s.timer = time.AfterFunc(step.Wake-now.At, s.wake)
	default:
		s.timer.Reset(step.Wake - now.At)
	}
}

func (s *stream) sleep(until time.Duration, watch bool) {
	s.call.sleep(until, watch)
	s.wake()
}

func (s *stream) wake() { s.withCallbacks(s.look) }

// look has the engine look at the time again.
func (s *stream) look() {
	s.mu.Lock()
	defer s.unlock()
	if !s.over {
		now := s.call.now()
		step := s.call.wake(now)
		s.queueDecision(&step, nil, nil)
		s.act(step, now)
	}
}

// queueDecision has the observers told what was decided and sent, if anything was. It requires mu.
func (s *stream) queueDecision(step *attempts.Step, ended *attempt, err error) {
	if tell := s.call.eventsOf(*step, ended, err); tell != nil {
		s.events = append(s.events, tell)
	}
}

// finish lets go of everything that the call holds, and has everybody told how it has ended. It requires mu.
func (s *stream) finish() {
	s.over = true
	s.replay.close()
	if s.call.engine.End().Answer == 0 {
		s.answer = nil
	}
}

// deliver tells everybody how the call has ended, without mu, which it requires. Then those that wait for that
// go on.
func (s *stream) deliver() {
	final := errPanicked // if a callback panics
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.done, s.final = true, final
		s.changed.Broadcast()
	}()
	s.call.release()
	reported := &unreported
	if s.answer != nil {
		reported = s.answer.report()
	}
	if final = s.call.finish(reported); final == nil {
		final = io.EOF
	}
}

// unlock gives up mu, and before that has everybody told what has happened.
func (s *stream) unlock() {
	defer s.mu.Unlock()
	for s.unnotified() {
		s.notifyNext()
	}
}

// wait returns when something may have changed. It requires mu, and gives it up meanwhile.
func (s *stream) wait() {
	if s.unnotified() {
		s.notifyNext()
		return
	}
	s.changed.Wait()
}

// unnotified reports whether something has happened that nobody is being told of. It requires mu.
func (s *stream) unnotified() bool { return !s.notifying && (len(s.events) > 0 || s.over && !s.done) }

// notifyNext tells of what has happened first, without mu, which it requires: nobody else does so meanwhile.
func (s *stream) notifyNext() {
	s.notifying = true
	defer func() { s.notifying = false }()
	if len(s.events) == 0 {
		s.deliver()
		return
	}
	event := s.events[0]
	s.events = s.events[1:]
	s.outside(event)
}

// outside runs f without mu, which it requires.
func (s *stream) outside(f func()) {
	s.unlock()
	defer s.mu.Lock()
	f()
}

// rethrow panics once the call is over, if an inner interceptor has panicked. It requires mu.
func (s *stream) rethrow() {
	if s.done {
		s.caught.rethrow()
	}
}
